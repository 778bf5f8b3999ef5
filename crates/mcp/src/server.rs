//! The server: it answers the requests of a client.

use std::borrow::Cow;
use std::sync::Arc;

use epitome::{Config, Settings};
use epitome_redact::{Finder, Redactor};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::index::SessionIndex;
use crate::page::Page;
use crate::tool::Tool;
use crate::tools::Library;

/// A server over the sessions of one user.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    library: Library,
    redact: Option<Finder>,
}

impl Server {
    /// A server that removes what `redact` finds from its answers; `None` removes nothing. Texts in
    /// the search index are redacted in any case.
    pub fn new(config: Config, settings: Settings, redact: Option<Finder>) -> Server {
        let index = SessionIndex::new(config.clone());
        let library = Library { config, settings, index };
        Server(Arc::new(Inner { library, redact }))
    }
}

impl Inner {
    /// A page of the answer to a call of a tool, or why there is none. Both are texts for the
    /// model.
    fn answer(&self, call: CallToolRequestParams) -> Result<String, String> {
        let Some(tool) = Tool::find(&call.name) else {
            return Err(format!("there is no tool `{}`", call.name));
        };
        let answer = || -> Result<String, ToolError> {
            let arguments = Arguments::of_call(tool, call.arguments.unwrap_or_default())?;
            let mut redactor = self.redact.as_ref().map(Redactor::new);
            let answer = self.library.answer(tool, &arguments, redactor.as_mut())?;
            let answer = redacted(&answer, redactor.as_mut());
            Ok(Page::from_answer(&answer, arguments.optional_text("cursor"))?.to_string())
        };
        answer().map_err(|err| {
            let mut redactor = self.redact.as_ref().map(Redactor::new);
            redacted(&err.to_string(), redactor.as_mut()).into_owned()
        })
    }
}

fn redacted<'t>(text: &'t str, redactor: Option<&mut Redactor<'_>>) -> Cow<'t, str> {
    match redactor {
        Some(redactor) => redactor.text(text),
        None => Cow::Borrowed(text),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("epitome", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Tool::ALL.into_iter().map(Tool::definition).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let inner = Arc::clone(&self.0);
        // A call reads files, which may take seconds. On another thread, it does not delay other
        // requests.
        let answer = tokio::task::spawn_blocking(move || inner.answer(request)).await;
        let answer = answer.map_err(|err| ErrorData::internal_error(err.to_string(), None))?;
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}
