//! Tracing spans of the engine on standard error, for debugging.

use epitome::Config;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::time::uptime;

use crate::failure::{Failure, Result};

/// From now on, prints each tracing span that `EPITOME_LOG` selects, with its duration, when the
/// span ends.
pub fn begin(config: &Config) -> Result<()> {
    let Some(filter) = config.log_filter() else { return Ok(()) };
    let filter = EnvFilter::try_new(filter).map_err(|err| {
        Failure::usage("EPITOME_LOG is not a valid filter")
            .because(&err)
            .hint("write it like epitome=debug")
    })?;
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::CLOSE)
        .with_timer(uptime())
        .with_ansi(false)
        .try_init();
    // It is not an error if there is a subscriber already.
    started.or(Ok(()))
}
