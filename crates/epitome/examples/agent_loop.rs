//! The loop of an agent that never fills its window: 200 calls in a window of 20,000 tokens.
//!
//!     cargo run -p epitome --example agent_loop
//!
//! The model and the tool are simulated. In a real agent, the body is sent to a model, and the
//! model's answer is pushed.

#![allow(clippy::print_stdout)] // It is what an example is for.

use std::error::Error;

use epitome::live::{Context, MessagePart, Setup};
use epitome_model::Tokens;
use epitome_passes::built_in;

fn main() -> Result<(), Box<dyn Error>> {
    let recipe = built_in("epitome").ok_or("a recipe of this name")?;
    let mut context = Context::in_memory(Setup::new(recipe).with_window(Tokens(20_000)));
    context.user("Find out which of the files opens the database twice.")?;
    let mut largest = Tokens(0);
    for n in 0..200 {
        let id = format!("call-{n}");
        let path = format!("src/module_{n}.rs");
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        context.assistant(&[MessagePart::call(&*id, "Read", arguments)])?;
        context.tool(&[MessagePart::output(&*id, source(n))])?;

        // Compacts the context if a compaction is due. The body is what the model gets.
        let request = context.view()?.body("anthropic")?;
        assert!(request.body.starts_with(r#"{"messages":["#));
        largest = largest.max(context.usage().tokens);
    }
    let report = context.report();
    println!("all messages: {} tokens; the largest request: {largest}", report.originals);
    for event in context.events() {
        println!("{}", serde_json::to_string(&event)?);
    }
    Ok(())
}

/// What the tool returns: a file of some length.
fn source(n: usize) -> String {
    let functions = (0..40).map(|f| format!("fn step_{n}_{f}() -> u32 {{ {} }}\n", n * f));
    functions.collect()
}
