//! The library, from outside.

mod archive;
mod bad_days;
mod changed;
mod conclusions;
mod cursor;
mod golden_views;
mod heard;
mod histories;
mod histories_redacted;
mod invariants;
mod keep;
mod live;
mod native;
mod pins;
mod redact;
mod references;
mod restore;
mod rows;
mod said_again;
mod spread;
mod stages;
mod store;
mod summaries;
mod summary;
mod twice;
mod verify;
