//! Tests on a real S3 server in this process, behind a proxy that cuts connections.

mod machine;
mod server;
mod transfer;
