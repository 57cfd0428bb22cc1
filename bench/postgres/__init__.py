"""PostgreSQL beside the embedded store, and several servers on one database."""
