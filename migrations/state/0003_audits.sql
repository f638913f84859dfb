-- One row an audit of the own archive that came to a verdict. Nothing here is part of what is audited.
CREATE TABLE audits (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  ended_at INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  -- 0 when something kept the audit from reading all it was asked to
  complete INTEGER NOT NULL,
  -- 0 when it was asked to read only some of the objects
  whole INTEGER NOT NULL,
  publications INTEGER NOT NULL,
  objects INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  gaps INTEGER NOT NULL,
  damage INTEGER NOT NULL,
  head_seq INTEGER NOT NULL,
  head_leaf TEXT NOT NULL
) STRICT;
