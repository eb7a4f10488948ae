-- The schema of version 2 as fecbench created it on SQLite.
CREATE TABLE campaigns (
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	title TEXT NOT NULL,
	created_at TEXT NOT NULL,
	design_text TEXT NOT NULL,
	seed TEXT NOT NULL,
	repetitions INTEGER NOT NULL,
	statistic TEXT NOT NULL,
	provenance JSON NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (name)
);
CREATE TABLE schema_version (
	application TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (application)
);
CREATE TABLE points (
	campaign_id INTEGER NOT NULL,
	point INTEGER NOT NULL,
	factors JSON NOT NULL,
	PRIMARY KEY (campaign_id, point),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
)
 WITHOUT ROWID;
CREATE TABLE starts (
	id INTEGER NOT NULL,
	campaign_id INTEGER NOT NULL,
	started_at TEXT NOT NULL,
	host TEXT NOT NULL,
	provenance JSON NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
CREATE TABLE tasks (
	id INTEGER NOT NULL,
	campaign_id INTEGER NOT NULL,
	digest TEXT NOT NULL,
	document JSON NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (campaign_id, digest),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
CREATE TABLE variants (
	campaign_id INTEGER NOT NULL,
	variant TEXT NOT NULL,
	position INTEGER NOT NULL,
	implementation TEXT NOT NULL,
	options JSON NOT NULL,
	baseline BOOLEAN NOT NULL,
	PRIMARY KEY (campaign_id, variant),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
)
 WITHOUT ROWID;
CREATE TABLE workloads (
	campaign_id INTEGER NOT NULL,
	workload TEXT NOT NULL,
	position INTEGER NOT NULL,
	name TEXT NOT NULL,
	parameters JSON NOT NULL,
	metric TEXT,
	PRIMARY KEY (campaign_id, workload),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
)
 WITHOUT ROWID;
CREATE TABLE trials (
	id INTEGER NOT NULL,
	campaign_id INTEGER NOT NULL,
	variant TEXT NOT NULL,
	workload TEXT NOT NULL,
	point INTEGER NOT NULL,
	repetition INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	superseded BOOLEAN NOT NULL,
	state TEXT NOT NULL,
	reason TEXT NOT NULL,
	started_at TEXT NOT NULL,
	duration_s DOUBLE NOT NULL,
	seeds JSON NOT NULL,
	dropper JSON NOT NULL,
	links JSON NOT NULL,
	exits JSON NOT NULL,
	stderr JSON NOT NULL,
	overhead_s JSON NOT NULL,
	checks JSON NOT NULL,
	start_id INTEGER,
	task_id INTEGER,
	PRIMARY KEY (id),
	FOREIGN KEY(campaign_id, variant) REFERENCES variants (campaign_id, variant),
	FOREIGN KEY(campaign_id, workload) REFERENCES workloads (campaign_id, workload),
	FOREIGN KEY(campaign_id, point) REFERENCES points (campaign_id, point),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id),
	FOREIGN KEY(start_id) REFERENCES starts (id),
	FOREIGN KEY(task_id) REFERENCES tasks (id)
);
CREATE UNIQUE INDEX one_trial_per_key ON trials (campaign_id, variant, workload, point, repetition) WHERE superseded = 0;
CREATE TABLE metrics (
	trial_id INTEGER NOT NULL,
	endpoint TEXT NOT NULL,
	name TEXT NOT NULL,
	value DOUBLE NOT NULL,
	PRIMARY KEY (trial_id, endpoint, name),
	FOREIGN KEY(trial_id) REFERENCES trials (id)
)
 WITHOUT ROWID;
CREATE TABLE series (
	trial_id INTEGER NOT NULL,
	endpoint TEXT NOT NULL,
	name TEXT NOT NULL,
	columns JSON NOT NULL,
	rows INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (trial_id, endpoint, name),
	FOREIGN KEY(trial_id) REFERENCES trials (id)
);
CREATE TABLE verdicts (
	trial_id INTEGER NOT NULL,
	link TEXT NOT NULL,
	direction TEXT NOT NULL,
	packets INTEGER NOT NULL,
	dropped INTEGER NOT NULL,
	bitmap BLOB NOT NULL,
	PRIMARY KEY (trial_id, link, direction),
	FOREIGN KEY(trial_id) REFERENCES trials (id)
);
