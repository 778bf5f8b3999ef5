//! With the real agents: they are installed from the npm registry, so these tests have a feature of
//! their own, which `cargo lab e2e` switches on.

use agents::e2e::RecordedSession;
use agents::scenario::Scenario;
use agents::{Way, find_agent, record, resume};
use anyhow::{Context, ensure};
use std::path::Path;

fn check_e2e(agent: &str) -> anyhow::Result<()> {
    let by_hand = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/by_hand.sh");
    RecordedSession::record(find_agent(agent)?)?.compact(Way::Rewrite, &by_hand)?;
    Ok(())
}

fn check_refused(agent: &str, from: &str, to: &str, refusal: &str) -> anyhow::Result<()> {
    let agent = find_agent(agent)?;
    let text = record::record(agent, &Scenario::own_compaction(agent))?.scrubbed()?.remove(0).text;
    ensure!(text.contains(from), "{from} is not in the session");
    let sent = resume::resume(agent, &text.replace(from, to))?;
    let why = sent.refusals.join("; ");
    ensure!(sent.accepted().is_err() && why.contains(refusal), "{why:?}");
    Ok(())
}

#[test]
fn pi_goes_on_with_a_session_compacted_by_hand() -> anyhow::Result<()> {
    check_e2e("pi")
}

#[test]
fn pi_goes_on_with_a_session_compacted_by_hand_over_chat_completions() -> anyhow::Result<()> {
    check_e2e("pi-chat")
}

#[test]
fn claude_code_goes_on_with_a_session_compacted_by_hand() -> anyhow::Result<()> {
    check_e2e("claude")
}

#[test]
fn altered_thinking_is_refused() -> anyhow::Result<()> {
    check_refused("pi", "Both were settled above", "Both were", "cannot be modified")?;
    check_refused("claude", "Both were settled above", "Both were", "cannot be modified")?;
    check_refused("codex", "Both were settled above", "Both were", "could not be verified")
}

#[test]
fn every_recorded_session_is_gone_on_with() -> anyhow::Result<()> {
    for fixture in fixtures::all() {
        let agent = find_agent(&fixture.agent)?;
        let text = String::from_utf8(fixture.bytes())?;
        let sent = resume::resume(agent, &text)?;
        sent.accepted().with_context(|| format!("{} {}", fixture.agent, fixture.name))?;
    }
    Ok(())
}
