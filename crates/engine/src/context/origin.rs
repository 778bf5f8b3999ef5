//! Where a conversation takes place, with which model and recipe, and its prompt.

use epitome_error::Result;
use epitome_formats::epitome::{Origin, origin_line, said_again};

use super::Context;

impl Context {
    /// Working folder, model and recipe of the conversation, as far as the log has them.
    pub fn origin(&self) -> &Origin {
        self.log.log().origin()
    }

    /// Records in the log that folder, model or recipe change from here on. Fields that are not set
    /// keep their values.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn set_origin(&mut self, origin: Origin) -> Result<()> {
        let mut updated = self.origin().clone();
        updated.update(origin);
        if updated == *self.origin() {
            return Ok(());
        }
        self.append_line(&origin_line(&updated))
    }

    /// Replaces the text of the prompt from here on. Returns whether there is a prompt. The log
    /// keeps the old text.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn replace_prompt(&mut self, text: &str) -> Result<bool> {
        let transcript = self.transcript();
        let is_prompt = |item: &usize| transcript.head.prompt.contains(item);
        let prompt = transcript.context().find(|(item, _)| is_prompt(item));
        let Some(id) = prompt.and_then(|(_, entry)| entry.id.clone()) else { return Ok(false) };
        self.append_line(&said_again(&id, text))?;
        Ok(true)
    }

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
    use crate::{Said, Setup, Speaker};

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
        context.push(&speaker, &[Said::text("You work in /a.")]).unwrap();
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

        // The same as when the log is read again.
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
