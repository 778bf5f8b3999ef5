//! A page in parts.

use std::ops::Range;

use super::Html;

/// A page in parts, each of them HTML in which everything of the session is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// What the page is called: this one is plain text.
    pub title: String,
    /// What stands above everything, with the search.
    pub bar: String,
    /// The way to each turn.
    pub timeline: String,
    /// What is known of the session, or its name.
    pub above: String,
    /// The turns, each with the name of its anchor.
    pub turns: Vec<(String, String)>,
    /// The way to the other pages.
    pub below: String,
}

impl Html<'_> {
    /// The page on which an item of the transcript stands, from 0.
    pub fn page_of(&self, item: usize) -> usize {
        let has = |pieces: &Range<usize>| {
            self.story.pieces[pieces.clone()].last().is_some_and(|piece| item <= piece.item)
        };
        self.pages.iter().position(has).unwrap_or(self.pages.len() - 1)
    }

    /// The parts of a page, for a program that puts a frame of its own around them. What is nested
    /// on a page is not in them.
    ///
    /// # Panics
    ///
    /// If there is no such page.
    pub fn sheet(&self, number: usize) -> Sheet {
        let (page, pieces) = (self.on_page(), self.pages[number].clone());
        let turns = self.story.turns_on(&pieces).map(|(idx, turn)| {
            let html = page.turn(idx, turn, &pieces).into_string();
            (format!("t{}", idx + 1), html)
        });
        Sheet {
            title: self.title(number),
            bar: self.before_columns(number).into_string(),
            timeline: self.timeline(number).into_string(),
            above: self.above(number).into_string(),
            turns: turns.collect(),
            below: self.steps_between_pages(number).into_string(),
        }
    }
}
