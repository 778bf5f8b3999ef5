//! The style sheet and the scripts of the pages. They are separate files, because the content
//! security policy allows no style or script inside of a page.

use axum::http::header;
use axum::response::IntoResponse;

/// The viewer's own style sheet, which is appended to the style sheet of rendered pages.
const STYLE: &str = include_str!("viewer.css");
const SCRIPT: &str = include_str!("viewer.js");

pub(crate) async fn style() -> impl IntoResponse {
    let style = [epitome_render::STYLE, STYLE].concat();
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], style)
}

/// The script of every rendered page.
pub(crate) async fn page_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], epitome_render::SCRIPT)
}

pub(crate) async fn viewer_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)
}
