//! The most expensive expressions fail or finish within a time limit.

use std::time::{Duration, Instant};

use cloakroom_expressions::{
    Context, Document, EvaluationError, OUTPUT_BYTES_MAX, Scope, Template,
};
use serde_json::{Value, json};

/// Generous for a busy machine; the measured worst case is a fraction of this.
const TIME_MAX: Duration = Duration::from_secs(1);

#[expect(clippy::unwrap_used, reason = "every template in these tables parses")]
fn evaluate_timed(text: &str, data: &Value) -> (Result<Value, EvaluationError>, Duration) {
    let template = Template::parse(Context::Mask, text).unwrap();
    let started = Instant::now();
    let result = template.evaluate(&Scope::of(&[("data", data)]));
    (result, started.elapsed())
}

/// Evaluates each template, prints the elapsed time and fails if it exceeds the limit.
#[expect(clippy::print_stderr, reason = "timings, shown with --no-capture")]
fn check(cases: &[(&str, &str, &Value)]) {
    for (name, text, data) in cases {
        let (_, elapsed) = evaluate_timed(text, data);
        eprintln!("{name}: {elapsed:?}");
        assert!(elapsed < TIME_MAX, "{name} took {elapsed:?}");
    }
}

#[test]
fn the_most_expensive_filters_stay_within_the_budget() {
    let text = json!("a".repeat(300_000));
    let umlauts = json!("ä".repeat(500_000));
    let fewer = json!("ä".repeat(170_000));
    let comments = json!("<!--".repeat(75_000));
    let list = json!(vec!["ab"; 32_000]);
    let numbers: Value = (0..32_000).rev().collect();
    let deep = (0..14).fold(json!(1), |inner, _| json!([inner, inner]));
    let members: Value = (0..900).map(|n| json!({ "n": n })).collect();
    let upcase = format!("{{{{ data {} }}}}", "| upcase ".repeat(400));
    check(&[
        ("upcase", &upcase, &text),
        (
            "reveal",
            "{{ data | reveal: 1, 1 | reveal: 1 | reveal | size }}",
            &text,
        ),
        ("replace", "{{ data | replace: '', data | size }}", &text),
        ("strip_html", "{{ data | strip_html | size }}", &comments),
        ("hex", "{{ data | to_base16 | size }}", &fewer),
        ("url", "{{ data | url_encode | size }}", &fewer),
        ("case", "{{ data | capitalize | size }}", &umlauts),
        ("escape", "{{ data | escape_once | size }}", &umlauts),
        ("split", "{{ data | split: '' | size }}", &text),
        ("sort", "{{ data | sort | size }}", &numbers),
        ("sort_natural", "{{ data | sort_natural | size }}", &list),
        ("uniq", "{{ data | uniq | size }}", &list),
        ("join", "{{ data | join: 'ab' | size }}", &list),
        ("sum", "{{ data | sum }}", &numbers),
        ("paths", "{{ data | json: '$..*..*..*' }}", &deep),
        (
            "tests",
            "{{ data | json: '$[?(@.n == $[?(@.n == 3)].n)]' }}",
            &members,
        ),
    ]);
}

/// Repeats `body` in a loop.
fn looped(body: &str) -> String {
    format!("{{% for i in (1..1000) %}}{body}{{% endfor %}}")
}

#[test]
fn the_most_expensive_loops_stay_within_the_budget() {
    let text = json!("a".repeat(300_000));
    let numbers: Value = (0..32_000).rev().collect();
    let members: Value = (0..900).map(|n| json!({ "n": n })).collect();
    // Every index resolves, so that all lookups are performed.
    let chain =
        |inner: &Value| json!({ "k": { "k": { "k": { "k": "k" } } }, "a": "k", "x": inner });
    let nested = (0..60).fold(json!(1), |inner, _| json!({ "k": inner }));
    let data = chain(&nested);
    let lookups = looped(&format!("{{{{ data.x{} }}}}", "[data.k.k.k.k]".repeat(60)));
    let doubling =
        "{% assign x = 'ab' %}".to_owned() + &"{% assign x = x | append: x %}".repeat(40);
    let nested = "{% for a in (1..1000) %}".repeat(15) + &"{% endfor %}".repeat(15);
    let equal = " and forloop.index == forloop.index".repeat(16);
    let positions = looped(&format!("{{% if forloop.index{equal} %}}{{% endif %}}"));
    let result = looped("{{ forloop.index }}{{ forloop.last }}{{ forloop.first }}");
    let dates = "| date: '%c' | append: 'x'".repeat(100);
    let dates = looped(&format!("{{{{ 'March 14, 2016' {dates} }}}}"));
    let path = "$..a[?(@.b == 'c' && (@.d < 1 || @.e))]";
    let paths = looped(&format!("{{{{ data | json: \"{path}\" }}}}").repeat(9));
    check(&[
        ("nested loops", &nested, &text),
        ("doubling", &doubling, &text),
        ("lookups", &lookups, &data),
        ("loop position", &positions, &text),
        ("loop position output", &result, &text),
        ("dates", &dates, &text),
        ("paths", &paths, &data),
        ("sizes", &looped("{{ data.size }}"), &text),
        (
            "contains",
            &looped("{% if data contains 'b' %}{% endif %}"),
            &text,
        ),
        (
            "equal",
            &looped("{% if data == data %}{% endif %}"),
            &numbers,
        ),
        (
            "items",
            &looped("{% for m in data %}{{ m.n }}{% endfor %}"),
            &members,
        ),
    ]);
}

#[test]
fn errors_name_the_exceeded_budget() {
    let large = json!("a".repeat(400_000));
    let loops = "{% for a in (1..1000) %}{% for b in (1..1000) %}{% endfor %}{% endfor %}";
    let cases = [
        (
            "{% for i in (1..1001) %}{% endfor %}",
            EvaluationError::TooManyIterations,
        ),
        (loops, EvaluationError::TooManySteps),
        (
            "{{ data | upcase | upcase | upcase }}",
            EvaluationError::TooMuchWork,
        ),
        (
            "{{ data | replace: 'a', 'bbbb' }}",
            EvaluationError::TooMuchWork,
        ),
        ("{{ data }}", EvaluationError::TooLarge),
        (
            "{% capture x %}{{ data }}{% endcapture %}",
            EvaluationError::TooLarge,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluate_timed(text, &large).0, Err(expected), "{text}");
    }
    let fits = "{% for i in (1..1000) %}{% endfor %}{{ data | slice: 0, 65536 }}";
    let result = evaluate_timed(fits, &large).0.unwrap();
    assert_eq!(result.as_str().map(str::len), Some(OUTPUT_BYTES_MAX));
}

#[test]
fn long_documents_parse_in_linear_time() {
    let bodies = [
        "{% raw %}{% endraw %}",
        "{%{{a}}",
        "{% raw %}",
        "{{ a",
        "{{a}}",
        "{%",
        "{",
    ];
    for body in bodies {
        let document = json!(body.repeat(1_000_000 / body.len()));
        let started = Instant::now();
        let _ = Document::parse(Context::Proxy, &document);
        let elapsed = started.elapsed();
        // Seconds on a busy machine; quadratic time would take minutes.
        assert!(elapsed < Duration::from_secs(20), "{body} took {elapsed:?}");
    }
}
