use super::*;

#[test]
fn lines_that_say_what_failed_are_known() {
    let cases = [
        ("error[E0308]: mismatched types", true),
        ("src/a.ts(3,5): error TS2322: Type 'x'", true),
        ("thread 'main' panicked at src/main.rs:3:5", true),
        ("--- FAIL: TestParse (0.00s)", true),
        ("FAILED tests/test_a.py::test_b", true),
        ("ValueError: invalid literal", true),
        ("Traceback (most recent call last):", true),
        ("bash: foo: command not found", true),
        ("npm ERR! code E404", true),
        ("Exit code 1", true),
        ("fatal: not a git repository", true),
        ("E       assert 1 == 2", true),
        ("cmd/main.go:364:22: cannot use x as int value", true),
        ("./testenv.go:12:3: undefined: getTestBinary", true),
        ("<tool_use_error>String to replace not found in file.", true),
        ("failed to parse jq expression", true),
        ("[lint] ERROR task failed", true),
        ("at 12:30: all is well", false),
        ("ok  pkg/errors 0.01s", false),
        ("0 errors, 0 warnings", false),
        ("    if err != nil {", false),
        ("handles errors gracefully", false),
    ];
    for (line, expect) in cases {
        assert_eq!(is_error_line(line), expect, "{line}");
    }
}

/// Lines of shells, compilers and test runners in other languages than English.
#[test]
fn lines_that_say_what_failed_are_known_in_ten_languages() {
    let cases = [
        ("Fehler: Paket nicht gefunden", true),
        ("bash: foo: Befehl nicht gefunden", true),
        ("Verbindung fehlgeschlagen.", true),
        ("main.c:3:5: Fehler: unbekannter Typname", true),
        ("错误：找不到模块", true),
        ("ls: 无法访问 'x': 没有那个文件或目录", true),
        ("编译失败，共 3 处", true),
        ("ls: no se puede acceder a 'x': No existe el archivo o el directorio", true),
        ("La prueba falló en la línea 3", true),
        ("erro: não foi possível abrir o arquivo", true),
        ("bash: foo : commande introuvable", true),
        ("Erreur : échec de la connexion", true),
        ("エラー: モジュールが見つかりません", true),
        ("接続に失敗しました", true),
        ("ошибка: не удалось открыть файл", true),
        ("bash: foo: команда не найдена", true),
        ("오류: 파일을 찾을 수 없습니다", true),
        ("hata: dosya bulunamadı", true),
        // These lines are recognised in any language: by a position in a file, an error code, a
        // mark, or the form of the output of make.
        ("Program.cs(12,5): chyba CS1002: očekává se ;", true),
        ("open x: ENOENT", true),
        ("make: *** [Makefile:3: all] Chyba 1", true),
        ("not ok 3 - parsovanie", true),
        ("  ✘ parsovanie (3 ms)", true),
        ("0 Fehler, 0 Warnungen", false),
        ("共 0 个错误", false),
        ("エラー処理を書く", false),
        ("Die Fehlerbehandlung ist fertig", false),
        ("обработка ошибок готова", false),
        ("gestion des erreurs", false),
        ("ok 3 - parsovanie", false),
        ("ENTRY(start)", false),
    ];
    for (line, expect) in cases {
        assert_eq!(is_error_line(line), expect, "{line}");
    }
}

/// If no line of a failed output has a listed word for failures, the lines around stack frames are
/// kept; without stack frames, the last lines.
#[test]
fn what_failed_in_a_language_without_words_keeps_its_end() {
    let amount = ExcerptSize { tail: 1, few: 20, ..ExcerptSize::default() };
    let run: String = (1..=30).map(|n| format!("krok {n}\n")).collect();
    let text = format!("Exit code 1\n{run}Zostawiono 2 zmiany.\nBrak pamięci.\n");
    let expect = "Exit code 1\n…\nkrok 30\nZostawiono 2 zmiany.\nBrak pamięci.";
    assert_eq!(shorten(&text, true, amount), expect);
    // The frames have a heading above them and Python's error message below them.
    let frames: String = (1..=30).map(|n| format!("  File \"a.py\", line {n}, in f\n")).collect();
    let text = format!("{run}Cofnięto stos:\n{frames}Błąd: brak klucza\n{run}");
    let kept = shorten(&text, true, amount);
    assert!(kept.contains("Cofnięto stos:") && kept.contains("Błąd: brak klucza"), "{kept}");
    assert_eq!(shorten(&run, false, amount), "…\nkrok 30");
}

#[test]
fn the_file_that_holds_the_whole_is_named_still() {
    let cases = [
        "Output too large (63.2KB). Full output saved to: /home/dev/tool-results/b7.txt",
        "Full output saved to: /home/dev/.local/share/opencode/tool-output/tool_1",
        "Output too large. Full output available at: /home/dev/p/tool-outputs/a.txt",
        "Output too large. Showing first 8,000 and last 32,000 characters. For full output \
         see: D:\\p\\tool-outputs\\a.txt",
        "[Tool output string (0.13MB, 9 lines) masked to preserve context window. Full string \
         saved to: /p/tool-outputs/a.txt]",
    ];
    let amount = ExcerptSize { width: 40, ..ExcerptSize::default() };
    for line in cases {
        let body = "0\n".repeat(20);
        for text in [format!("<a>\n{line}\n{body}"), format!("{body}\n{line}\n</a>\n")] {
            let shown = shorten(&text, false, amount);
            assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
        }
        let within = shorten(&format!("{body}{line}\n{body}"), false, amount);
        assert!(!within.contains(line), "{within}");
    }
    for line in ["the full output: see below", "full outputs are long", "x: /full/output"] {
        assert!(!is_where_saved(line), "{line}");
    }
}

#[test]
fn definitions_are_known() {
    let cases = [
        ("   12→pub fn main() {", true),
        ("12\tdef run(self):", true),
        ("export async function load() {", true),
        ("## Usage", true),
        ("func (s *Store) Get(key string) error {", true),
        ("    let x = 1;", false),
        ("return fn(x)", false),
    ];
    for (line, expect) in cases {
        assert_eq!(DEFINITION.is_match(line), expect, "{line}");
    }
}

#[test]
fn a_long_run_keeps_its_ends() {
    let text = (1..=30).map(|n| format!("{n}\n")).collect::<String>();
    let amount = ExcerptSize { head: 1, tail: 2, few: 20, ..ExcerptSize::default() };
    assert_eq!(shorten(&text, false, amount), "1\n…\n29\n30");
}

#[test]
fn a_failing_run_keeps_its_errors_and_ends() {
    let text = "start\na\nb\nerror: bad\nc\nd\nerror: bad\nexit code 1\n";
    let amount = ExcerptSize { head: 1, tail: 1, ..ExcerptSize::default() };
    assert_eq!(shorten(text, true, amount), "…\nerror: bad\n…\nexit code 1");
}

#[test]
fn what_fails_again_below_is_kept_there() {
    let amount = ExcerptSize { tail: 1, ..ExcerptSize::default() };
    let mut later = LaterLines::default();
    let mut shown = |text: &str| {
        let errors = later.choose(ErrorLines::new(text, ToolKind::Shell, true));
        output_excerpt(text, ToolKind::Shell, true, amount, &errors)
    };
    let (one, other) = ("error: mismatched types in a.rs", "error: unused variable in b.rs");
    let cases = [
        (format!("{one}\nexit code 1"), format!("{one}\nexit code 1")),
        (format!("{other}\n{one}\nexit code 1"), format!("{other}\n…\nexit code 1")),
        // The excerpt of the failed output keeps one of its error lines.
        (format!("{one}\nmade 1 of 2"), format!("{one}\nmade 1 of 2")),
    ];
    for (text, expect) in cases {
        assert_eq!(shown(&text), expect);
    }
}

fn shorten(text: &str, failed: bool, amount: ExcerptSize) -> String {
    excerpt_alone(text, ToolKind::Shell, failed, amount)
}

/// The excerpt of a result that is the last one of its session.
fn excerpt_alone(text: &str, kind: ToolKind, failed: bool, amount: ExcerptSize) -> String {
    let errors = LaterLines::default().choose(ErrorLines::new(text, kind, failed));
    output_excerpt(text, kind, failed, amount, &errors)
}

#[test]
fn what_is_kept_of_a_result_depends_on_its_tool() {
    let text = "fn one() {\nbody\nerror: bad\nstruct Two;\nlast";
    let amount = ExcerptSize { head: 1, tail: 1, outline: 9, ..ExcerptSize::default() };
    let of = |kind, failed| excerpt_alone(text, kind, failed, amount);
    let (errors, outline) = ("…\nerror: bad\n…\nlast", "fn one() {\n…\nstruct Two;");
    let cases = [
        (ToolKind::Shell, false, errors),
        (ToolKind::Other, false, errors),
        (ToolKind::Fetch, false, errors),
        (ToolKind::Read, false, outline),
        (ToolKind::Search, false, ""),
        (ToolKind::Write, false, ""),
        (ToolKind::Edit, false, ""),
        (ToolKind::List, false, ""),
        (ToolKind::Read, true, errors),
        (ToolKind::Edit, true, errors),
    ];
    for (kind, failed, expect) in cases {
        assert_eq!(of(kind, failed), expect, "{kind:?}, failed: {failed}");
    }
}

#[test]
fn an_outline_is_spread_over_the_whole_file() {
    let text = (1..=9).map(|n| format!("fn f{n}() {{}}\n")).collect::<String>();
    let of = |outline| argument_excerpt(&text, ExcerptSize { outline, ..ExcerptSize::default() });
    assert_eq!(of(0), "");
    assert_eq!(of(1), "fn f1() {}");
    assert_eq!(of(3), "fn f1() {}\n…\nfn f4() {}\n…\nfn f7() {}");
    // Of nine definitions, every third is kept: with every second, there would be more than four.
    assert_eq!(of(4), of(3));
    assert_eq!(of(9), text.trim_end());
}

#[test]
fn long_lines_are_cut_except_those_that_say_what_failed() {
    let text = "ééééé\nerror: it does not work";
    let amount = ExcerptSize { head: 1, tail: 1, width: 5, ..ExcerptSize::default() };
    assert_eq!(argument_excerpt(text, amount), "éé…\nerror: it does not work");
    assert_eq!(argument_excerpt(text, ExcerptSize { width: 0, ..amount }), text);
    let long = format!("\n{}\n", "x".repeat(9));
    assert_eq!(shorten(&long, false, amount), "…\nxxxxx…");
    // A line that reports a failure is not truncated.
    assert_eq!(shorten(&long, true, amount), "…\nxxxxxxxxx");
}

#[test]
fn empty_lines_are_no_ends() {
    let amount = ExcerptSize { head: 1, tail: 1, ..ExcerptSize::default() };
    assert_eq!(argument_excerpt("\n  \nfirst\nmiddle\nlast\n\n", amount), "…\nfirst\n…\nlast");
    assert_eq!(argument_excerpt("\n\n", amount), "");
}

#[test]
fn a_line_of_a_megabyte_is_neither_an_error_nor_a_definition() {
    let long = |start: &str, len: usize| format!("{start}{}", "x".repeat(len - start.len()));
    assert!(is_error_line(&long("error: ", 4_000)) && is_definition(&long("fn ", 4_000)));
    assert!(!is_error_line(&long("error: ", 4_001)) && !is_definition(&long("fn ", 4_001)));
}
