//! What a server needs from the program that it is part of.

use std::any::Any;
use std::path::{Path, PathBuf};

use epitome_error::Result;
use epitome_passes::{NoReply, Reply, Writer};
use serde_json::Value;

use crate::{Context, Question, Setup};

/// Keeps the logs of contexts. Each log has a path, which a client may name.
pub trait LogStore: Send {
    /// Begins a new log of the session with this name, and locks it.
    ///
    /// # Errors
    ///
    /// If the log cannot be created or locked.
    fn create(&self, session: &str, setup: Setup) -> Result<NewLog>;

    /// The path of the newest log of this session.
    ///
    /// # Errors
    ///
    /// `NotFound` if the session has none.
    fn newest(&self, session: &str) -> Result<PathBuf>;

    /// The name of the session in a log. `None` if the file cannot be read or is not a log.
    fn id(&self, path: &Path) -> Option<String>;

    /// Whether two paths are those of the same log.
    fn is_same(&self, one: &Path, other: &Path) -> bool;

    /// Locks a log against other servers.
    ///
    /// # Errors
    ///
    /// `Locked` if another server has it open; another kind if it cannot be locked.
    fn lock(&self, path: &Path) -> Result<LogLock>;

    /// Resumes the context of a log, in the state in which it was left.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not a log, or was written by a newer version of epitome.
    fn resume(&self, path: &Path, setup: Setup) -> Result<Context>;
}

/// Keeps a log locked until it is dropped.
pub type LogLock = Box<dyn Any + Send>;

/// A log that was created.
pub struct NewLog {
    /// The path of the log.
    pub path: PathBuf,
    /// The context whose log it is.
    pub context: Context,
    /// The lock of the log.
    pub lock: LogLock,
}

/// A model that writes summaries.
pub trait SummaryModel: Send + Sync {
    /// The window of the model and its tokenizer.
    fn writer(&self) -> Writer;

    /// The model's answer to a question.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    fn answer(&self, question: &Question) -> Result<Reply, NoReply>;

    /// What the model has used for all questions, as JSON: the member `models` of the answer to
    /// `usage`.
    fn spent(&self) -> Value;
}
