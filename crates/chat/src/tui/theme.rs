//! The styles of the terminal interface: the 16 colours of the terminal, or none.

use epitome_render::Token;
use ratatui::style::{Color, Modifier, Style};

/// The styles of what is drawn. Without colours (`NO_COLOR`), attributes alone tell things apart.
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

    /// What the user typed, and what is chosen.
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

    pub(super) fn link(self) -> Style {
        self.colour(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    /// A share of the window in per cent: yellow from 70 on, red from 80 on.
    pub(super) fn fill(self, percent: u64) -> Style {
        match percent {
            0..70 => self.good(),
            70..80 => self.warn().add_modifier(Modifier::BOLD),
            80.. => self.bad().add_modifier(Modifier::BOLD | Modifier::REVERSED),
        }
    }

    pub(super) fn token(self, token: Option<Token>) -> Style {
        match token {
            None => self.plain(),
            Some(Token::Comment) => self.dim(),
            Some(Token::String) => self.colour(Color::Green),
            Some(Token::Number) => self.colour(Color::Magenta),
            Some(Token::Keyword) => self.colour(Color::Blue).add_modifier(Modifier::BOLD),
            Some(Token::Function) => self.colour(Color::Cyan),
            Some(Token::Type) => self.colour(Color::Yellow),
            Some(Token::Attribute) => self.colour(Color::Cyan),
        }
    }
}
