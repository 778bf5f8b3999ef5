use super::*;

#[track_caller]
fn check(points: &[(u64, u64)], expect: Option<(u32, u64)>) {
    let points: Vec<_> = points.iter().map(|(ours, recorded)| (Tokens(*ours), *recorded)).collect();
    let got = calibrate(&points);
    assert_eq!(got.map(|fit| (fit.factor, fit.fixed.0)), expect, "{got:?}");
}

/// `count` points of a line with the slope `thousandths` / 1,000; each context is `step` tokens
/// larger than the one before.
fn on_line(count: u64, step: u64, thousandths: u64, fixed: u64) -> Vec<(u64, u64)> {
    (1..=count).map(|n| (n * step, n * step * thousandths / 1_000 + fixed)).collect()
}

#[test]
fn a_line_is_found() {
    check(&on_line(20, 1_000, 1_220, 17_000), Some((1_220, 17_000)));
    check(&on_line(8, 1_000, 1_000, 0), Some((1_000, 0)));
    check(&on_line(5_000, 50, 1_500, 12), Some((1_500, 12)));
}

#[test]
fn many_points_are_thinned_evenly() {
    let points = |range: std::ops::Range<i128>, step: usize| -> Vec<(i128, i128)> {
        range.step_by(step).map(|n| (n, 2 * n)).collect()
    };
    assert_eq!(thin(&points(0..400, 1)), points(0..400, 1));
    // Each eighth point is kept, from the first to the last: 399 * 8 = 3,192.
    assert_eq!(thin(&points(0..3_193, 1)), points(0..3_193, 8));
}

#[test]
fn too_little_is_none() {
    check(&[], None);
    check(&on_line(7, 1_000, 1_220, 17_000), None);
    // Three lists without a calibration: the contexts differ by less than 4,000 tokens; they differ
    // by less than a fourth of the largest; they are all equal.
    check(&on_line(50, 70, 1_220, 17_000), None);
    let far: Vec<_> = on_line(50, 100, 1_220, 0).iter().map(|p| (p.0 + 100_000, p.1)).collect();
    check(&far, None);
    check(&[(10_000, 12_000); 30], None);
}

#[test]
fn what_cannot_be_is_none() {
    check(&on_line(20, 1_000, 400, 0), None);
    check(&on_line(20, 1_000, 3_500, 0), None);
    check(&on_line(20, 1_000, 1_000, 300_000), None);
    let falling: Vec<_> = (1..=20).map(|n| (n * 1_000, 100_000 - n * 2_000)).collect();
    check(&falling, None);
    let scattered: Vec<_> = (1..=40).map(|n| (n * 1_000, 5_000 + n * n * 7_919 % 90_000)).collect();
    check(&scattered, None);
    check(&[(u64::MAX, u64::MAX); 9], None);
    check(&[(u64::MAX, 1), (1, u64::MAX), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10)], None);
}

#[test]
fn zeros_are_left_out() {
    let mut points = on_line(20, 1_000, 1_220, 17_000);
    points.extend([(0, 17_000), (5_000, 0), (0, 0)]);
    check(&points, Some((1_220, 17_000)));
}

#[test]
fn a_few_wild_points_change_little() {
    let mut points = on_line(40, 1_000, 1_220, 17_000);
    for idx in [3, 11, 29, 35] {
        points[idx].1 = 900;
    }
    let points: Vec<_> = points.into_iter().map(|(x, y)| (Tokens(x), y)).collect();
    let fit = calibrate(&points).unwrap();
    assert!(fit.factor.abs_diff(1_220) <= 40, "{fit:?}");
    assert!(fit.fixed.0.abs_diff(17_000) <= 1_000, "{fit:?}");
}

#[test]
fn what_is_fixed_is_never_negative() {
    let points: Vec<_> = (1..=20).map(|n| (n * 1_000, n * 1_300 - 500)).collect();
    let points: Vec<_> = points.into_iter().map(|(x, y)| (Tokens(x), y)).collect();
    let fit = calibrate(&points).unwrap();
    assert_eq!(fit.fixed, Tokens(0));
    assert!((1_200..=1_300).contains(&fit.factor), "{fit:?}");
}

#[test]
fn order_does_not_matter() {
    let mut points: Vec<_> =
        on_line(30, 900, 1_180, 9_000).into_iter().map(|(x, y)| (Tokens(x), y)).collect();
    let forth = calibrate(&points);
    points.reverse();
    assert_eq!(calibrate(&points), forth);
}

#[test]
fn applying_rounds_and_does_not_overflow() {
    let fit = Calibration { factor: 1_220, fixed: Tokens(10), points: 9, error: 5 };
    assert_eq!(fit.scale(Tokens(0)), Tokens(0));
    assert_eq!(fit.scale(Tokens(3)), Tokens(4));
    assert_eq!(fit.apply(Tokens(1_000)), Tokens(1_230));
    assert_eq!(fit.scale(Tokens(u64::MAX)), Tokens(u64::MAX));
}

#[test]
fn families_are_known_by_name() {
    let cases = [
        ("claude-opus-4-5-20251101", Family::Anthropic),
        ("anthropic/claude-sonnet-4.5", Family::Anthropic),
        ("eu.anthropic.claude-haiku-4-5-v1:0", Family::Anthropic),
        ("Claude Opus 4.8", Family::Anthropic),
        ("gpt-5.5", Family::OpenAi),
        ("gpt-5.3-codex-spark", Family::OpenAi),
        ("GPT4o", Family::OpenAi),
        ("openai/o3-mini", Family::OpenAi),
        ("o1", Family::OpenAi),
        ("codex-mini-latest", Family::OpenAi),
        ("gpt-oss-120b", Family::OpenAi),
        ("models/gemini-2.5-pro", Family::Google),
        ("google/gemma-3", Family::Google),
        ("deepseek-v3", Family::Other),
        ("qwen3-coder", Family::Other),
        ("llama-o12", Family::Other),
        ("<synthetic>", Family::Other),
        ("", Family::Other),
        ("模型", Family::Other),
    ];
    for (model, expect) in cases {
        assert_eq!(family(model), expect, "{model}");
    }
}
