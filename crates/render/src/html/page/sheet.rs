//! A page as separate parts.

use super::Html;
use crate::html::controls;

/// The parts of a page. All but the title and the anchors are HTML, in which all text of the
/// session is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// The title of the page, as plain text.
    pub title: String,
    /// The bar at the top, with the search and the list of keys.
    pub bar: String,
    /// Links to the turns, and to the other pages.
    pub timeline: String,
    /// The heading: on the first page with the key figures, on the others only the title.
    pub above: String,
    /// The filter buttons.
    pub filter: String,
    /// The turns, each with its anchor.
    pub turns: Vec<(String, String)>,
    /// Links to the previous and the next page, and to failed calls on other pages.
    pub below: String,
}

impl Sheet {
    /// The number of bytes of all parts.
    pub fn len(&self) -> usize {
        let Sheet { title, bar, timeline, above, filter, turns, below } = self;
        let turns: usize = turns.iter().map(|(anchor, html)| anchor.len() + html.len()).sum();
        title.len() + bar.len() + timeline.len() + above.len() + filter.len() + turns + below.len()
    }

    /// Whether all parts are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Html<'_> {
    /// The index of the last item of the transcript on each page; 0 for a page without items.
    pub fn last_items(&self) -> Vec<usize> {
        let pieces =
            self.layout.pages.iter().map(|pieces| &self.layout.story.pieces[pieces.clone()]);
        pieces.map(|pieces| pieces.last().map_or(0, |piece| piece.item)).collect()
    }

    /// The number, from 0, of the page that shows an item of the transcript. If no page shows the
    /// item, the page with the next item that is shown, or else the last page.
    pub fn page_of(&self, item: usize) -> usize {
        let page = self.last_items().iter().position(|last| item <= *last);
        page.unwrap_or(self.layout.pages.len() - 1)
    }

    /// The parts of a page, for a program that puts them into its own layout. Nested sub-agents are
    /// not included.
    ///
    /// # Panics
    ///
    /// If there is no such page.
    pub fn sheet(&self, number: usize) -> Sheet {
        let page = self.on_page(number, String::new());
        let pieces = self.layout.pages[number].clone();
        let turns = self.layout.story.turns_on(&pieces).map(|turn| {
            let html = page.turn(turn, &pieces).into_string();
            (format!("t{}", turn.number), html)
        });
        Sheet {
            title: self.title(number),
            bar: self.before_columns(number).into_string(),
            timeline: self.timeline(number).into_string(),
            above: self.above(number).into_string(),
            filter: controls::filter().into_string(),
            turns: turns.collect(),
            below: self.steps_between_pages(number).into_string(),
        }
    }
}
