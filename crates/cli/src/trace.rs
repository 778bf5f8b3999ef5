//! What the engine does, told on standard error: for whoever looks into it.

use epitome::Config;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::time::uptime;

use crate::failure::{Failure, Result};

/// Tells each span that `EPITOME_LOG` lets through when it ends, and how long it took.
pub fn begin(config: &Config) -> Result<()> {
    let Some(filter) = config.log_filter() else { return Ok(()) };
    let filter = EnvFilter::try_new(filter).map_err(|err| {
        Failure::usage("EPITOME_LOG is no filter").because(&err).hint("write it like epitome=debug")
    })?;
    let told = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::CLOSE)
        .with_timer(uptime())
        .with_ansi(false)
        .try_init();
    // That somebody else listens already is no failure.
    told.or(Ok(()))
}
