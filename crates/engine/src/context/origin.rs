//! Changes of what a conversation began with: its origin (working directory, model and recipe), and
//! its prompt.

use epitome_error::Result;
use epitome_formats::epitome::{Origin, origin_line, said_again};

use super::Context;

impl Context {
    /// The working directory, model and recipe of the conversation, as far as the log states them.
    pub fn origin(&self) -> &Origin {
        self.log.parsed().origin()
    }

    /// Records in the log that the working directory, model or recipe change at this point. Fields
    /// that are `None` keep their values. If nothing changes, nothing is written.
    pub fn set_origin(&mut self, origin: Origin) -> Result<()> {
        let mut updated = self.origin().clone();
        updated.update(origin);
        if updated == *self.origin() {
            return Ok(());
        }
        self.append_line(&origin_line(&updated))
    }

    /// Replaces the text of the prompt from this point on. Returns whether there is a prompt. The
    /// log keeps the old text.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// // Without a prompt nothing is replaced.
    /// assert!(!context.replace_prompt("Be brief.")?);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn replace_prompt(&mut self, text: &str) -> Result<bool> {
        let transcript = self.transcript();
        let prompt = transcript.context().find(|(item, _)| transcript.head.prompt.contains(item));
        let Some(id) = prompt.and_then(|(_, entry)| entry.id.clone()) else { return Ok(false) };
        self.append_line(&said_again(&id, text))?;
        Ok(true)
    }

    /// Appends a line that may change what is sent, and counts the context again.
    pub(super) fn append_line(&mut self, line: &str) -> Result<()> {
        self.log.append(line.as_bytes())?;
        self.recount();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::{Block, Role};
    use epitome_passes::built_in;

    use super::*;
    use crate::{MessagePart, Setup, Speaker};

    fn origin(cwd: &str, model: &str) -> Origin {
        let recipe = Some("s06".to_owned());
        Origin { cwd: Some(cwd.to_owned()), model: Some(model.to_owned()), recipe }
    }

    fn prompts(context: &Context) -> Vec<String> {
        let (transcript, source) = (context.transcript(), context.log.bytes());
        let prompts = transcript.context().filter(|(it, _)| transcript.head.prompt.contains(it));
        let texts = prompts.flat_map(|(_, entry)| &entry.blocks).map(|block| match block {
            Block::Text(text) => text.read(source).into_owned(),
            _ => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn a_log_knows_where_its_conversation_is_held_and_what_its_prompt_is_now() {
        let setup = Setup::new(built_in("s06").unwrap()).with_origin(origin("/a", "m/one"));
        let mut context = Context::in_memory(setup);
        assert!(!context.replace_prompt("none").unwrap());
        let speaker = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
        context.push(&speaker, &[MessagePart::text("You work in /a.")]).unwrap();
        context.user("Hello.").unwrap();
        let before = context.log().len();
        context.set_origin(Origin::default()).unwrap();
        context.set_origin(origin("/a", "m/one")).unwrap();
        assert_eq!(context.log().len(), before, "nothing is new");

        let small = context.usage().tokens;
        let moved = Origin { cwd: Some("/b".to_owned()), ..Origin::default() };
        context.set_origin(moved).unwrap();
        assert!(context.replace_prompt("You work in /b, which is elsewhere.").unwrap());
        assert!(context.replace_prompt("You work in /b. It is far from /a.").unwrap());
        assert_eq!(context.origin(), &origin("/b", "m/one"));
        assert_eq!(prompts(&context), ["You work in /b. It is far from /a."]);
        assert!(context.usage().tokens > small, "it is counted");
        context.user("Go on.").unwrap();

        // The log that is read again has the same origin and the same context.
        let (bytes, mut log) = (context.log().to_vec(), epitome_formats::epitome::Log::default());
        epitome_formats::lines(&bytes, |line| log.line(&line, &mut ()));
        assert_eq!(log.origin(), &origin("/b", "m/one"));
        assert_eq!(log.transcript().context, context.transcript().context);
        let last = epitome_formats::epitome::last_origin(&bytes);
        assert_eq!(last.as_ref(), Some(context.origin()));
        // The first line of the log keeps the first origin.
        assert_eq!(epitome_formats::epitome::origin(&bytes), Some(origin("/a", "m/one")));
    }
}
