# make           build/PROGRAM, where the folder has one
# make test      our tests
# make lint      the checks of form
#
# A folder sets what differs, and includes this: PROGRAM, its name in build/, and BINARY, that of cargo's; PROFILE,
# --release unless it is a library alone; FIRST, the targets that have to be there before cargo; THEN, those that follow
# our tests; WHOLE, --all for a workspace of several crates; FEATURES, those of ours that it has; CARGO_TARGET_DIR, the
# target of a neighbour that compiles the same crates, in the same versions and with the same profile.

PROFILE ?= --release
FIRST ?= Cargo.lock
export CARGO_TARGET_DIR ?= build/target

.PHONY: all test lint clean

all: $(FIRST)
ifdef PROGRAM
	@cargo build --quiet $(PROFILE) --locked
	@mkdir -p build
	@cp --update --preserve=timestamps --remove-destination $(CARGO_TARGET_DIR)/release/$(or $(BINARY),$(PROGRAM)) build/$(PROGRAM)
endif

Cargo.lock: crates.lock
	@../crates_lock.py restore .

test: $(FIRST)
	@cargo test --quiet $(PROFILE) --locked $(FEATURES)
ifdef THEN
	@$(MAKE) --no-print-directory $(THEN)
endif

lint: $(FIRST)
	@cargo fmt $(WHOLE) --check
	@cargo clippy --quiet $(PROFILE) --locked $(FEATURES) $(WHOLE) --all-targets -- --deny warnings

clean::
	rm -rf build
