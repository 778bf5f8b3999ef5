//! Answers the requests of a server. The only information that a server may request is the
//! project's folder.
#![expect(deprecated, reason = "the servers of today ask for roots")]

use std::path::{Path, PathBuf};

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};

use super::{Found, set};

/// The handler of a server's requests.
pub(super) struct Handler {
    root: PathBuf,
    found: Found,
}

impl Handler {
    pub(super) fn new(root: &Path, found: Found) -> Handler {
        Handler { root: root.to_owned(), found }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("epitome", env!("CARGO_PKG_VERSION")))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(format!("file://{}", self.root.display()))]))
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        // The offered tools stay the same until `Workplace::refresh_tools` is called.
        if let Ok(tools) = context.peer.list_all_tools().await {
            set(&self.found, Ok(tools));
        }
    }
}
