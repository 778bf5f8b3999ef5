//! The styles of the terminal interface: the 16 colours of the terminal, or none.

use anstyle::{AnsiColor, Effects};
use ratatui::style::{Color, Modifier, Style};

/// The styles of the interface. Without colours (`NO_COLOR`), only attributes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are used.
    pub colours: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn italic(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// The style of the user's messages, of the mark before the input, and of keys to press.
    pub(super) fn accent(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(super) fn warn(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    pub(super) fn code(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// The style of a share of the window in per cent: green below 70, yellow below 80, red from 80
    /// on.
    pub(super) fn fill(self, percent: u64) -> Style {
        match percent {
            0..70 => self.good(),
            70..80 => self.warn().add_modifier(Modifier::BOLD),
            80.. => self.bad().add_modifier(Modifier::BOLD | Modifier::REVERSED),
        }
    }

    /// The style of rendered Markdown.
    pub(super) fn ratatui_style(self, style: anstyle::Style) -> Style {
        let colour = match style.get_fg_color() {
            Some(anstyle::Color::Ansi(AnsiColor::Green)) => Some(Color::Green),
            Some(anstyle::Color::Ansi(AnsiColor::Magenta)) => Some(Color::Magenta),
            Some(anstyle::Color::Ansi(AnsiColor::Blue)) => Some(Color::Blue),
            Some(anstyle::Color::Ansi(AnsiColor::Cyan)) => Some(Color::Cyan),
            Some(anstyle::Color::Ansi(AnsiColor::Yellow)) => Some(Color::Yellow),
            _ => None,
        };
        let effects = [
            (Effects::BOLD, Modifier::BOLD),
            (Effects::DIMMED, Modifier::DIM),
            (Effects::ITALIC, Modifier::ITALIC),
            (Effects::UNDERLINE, Modifier::UNDERLINED),
        ];
        let set = effects.into_iter().filter(|(it, _)| style.get_effects().contains(*it));
        let modifiers = set.map(|(_, modifier)| modifier).collect();
        colour.map_or_else(Style::new, |it| self.colour(it)).add_modifier(modifiers)
    }
}
