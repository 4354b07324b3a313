//! Plots p99 latency over time.

use std::fmt::Write as _;

use super::SoakResults;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 30.0;

/// p99 on a logarithmic scale; faults are gray.
pub(crate) fn svg(results: &SoakResults) -> String {
    let seconds = (results.p99_ms.len() * 5).max(1) as f64;
    let highest = results
        .p99_ms
        .iter()
        .copied()
        .fold(1.0, f64::max)
        .log10()
        .ceil();
    let x = |second: f64| LEFT + second / seconds * (WIDTH - LEFT);
    let y = |ms: f64| (HEIGHT - BOTTOM) * (1.0 - ms.max(1.0).log10() / highest);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    // Writing to a string cannot fail.
    for (fault, from, to) in &results.broken {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"0\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#ddd\"><title>{fault}</title></rect>",
            x(*from),
            x(*to) - x(*from),
            HEIGHT - BOTTOM
        );
    }
    for power in 0..=highest as i32 {
        let ms = 10_f64.powi(power);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#bbb\"/>\
             <text x=\"4\" y=\"{1:.1}\">{ms:.0} ms</text>",
            y(ms),
            y(ms) + 10.0
        );
    }
    let points = results.p99_ms.iter().enumerate();
    let points = points.map(|(step, ms)| format!("{:.1},{:.1}", x(step as f64 * 5.0), y(*ms)));
    let points = points.collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        svg,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"#06c\" stroke-width=\"1.5\"/>\n\
         <text x=\"{LEFT}\" y=\"{:.1}\">p99 of all requests, in steps of 5 s over {:.0} minutes; gray: \
         faults</text>\n</svg>",
        HEIGHT - 8.0,
        seconds / 60.0
    );
    svg
}
