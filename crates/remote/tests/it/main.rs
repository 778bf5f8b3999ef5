//! Tests on a real S3 server in this process, behind a proxy that cuts connections.

mod archive;
mod faults;
mod machine;
mod network;
mod server;
mod transfer;
mod vault;
