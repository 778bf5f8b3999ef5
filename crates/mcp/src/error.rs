//! The error of a call of a tool.

use epitome::sentence;
use epitome_search::{BadQuery, SearchError};

use crate::arguments::BadArguments;
use crate::page::BadCursor;

/// Why a tool has no answer, as a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ToolError(String);

impl ToolError {
    pub(crate) fn new(what: impl Into<String>) -> ToolError {
        ToolError(what.into())
    }
}

impl From<epitome::Error> for ToolError {
    fn from(err: epitome::Error) -> ToolError {
        ToolError(sentence(&err))
    }
}

impl From<SearchError> for ToolError {
    fn from(err: SearchError) -> ToolError {
        ToolError(sentence(&err))
    }
}

impl From<BadQuery> for ToolError {
    fn from(err: BadQuery) -> ToolError {
        ToolError(err.to_string())
    }
}

impl From<BadArguments> for ToolError {
    fn from(err: BadArguments) -> ToolError {
        ToolError(err.to_string())
    }
}

impl From<BadCursor> for ToolError {
    fn from(err: BadCursor) -> ToolError {
        ToolError(err.to_string())
    }
}
