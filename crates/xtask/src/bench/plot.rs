//! The results as a picture: how the node compares with the bare engine.

use std::fmt::Write;

use super::report::Row;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 52.0;
/// The part of a group's width that its bars take.
const GROUP_FILL: f64 = 0.8;
/// More lines than this would be a grid, not a scale.
const TICKS_MAX: f64 = 8.0;
/// From pale to dark, so that they are told apart without colour too.
const COLORS: [&str; 3] = ["#9ecae1", "#4292c6", "#08519c"];

/// Grouped bars of the ratios: a group per operation, a bar per number of connections.
pub(super) fn svg(rows: &[Row]) -> String {
    let scale = Scale::of(rows);
    let mut text = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" font-family="sans-serif" font-size="13" fill="#222222">
<title>Requests per second of one node, relative to the bare engine</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="26" font-size="16" font-weight="bold">Requests per second, relative to the bare engine</text>
"##
    );
    axis(&mut text, &scale);
    legend(&mut text, rows);
    let groups: Vec<&[Row]> = rows.chunk_by(|a, b| a.operation == b.operation).collect();
    let group_width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    for (index, group) in groups.into_iter().enumerate() {
        bars(
            &mut text,
            &scale,
            group,
            LEFT + group_width * index as f64,
            group_width,
        );
    }
    let y = scale.y(1.0);
    line(
        &mut text,
        y,
        r##"stroke="#c0392b" stroke-width="1.5" stroke-dasharray="6 4""##,
    );
    text.push_str("</svg>\n");
    text
}

/// From ratios to heights.
struct Scale {
    step: f64,
    ticks: u32,
}

impl Scale {
    /// The line of the engine is always in the picture, with room for labels above.
    fn of(rows: &[Row]) -> Self {
        let highest = rows.iter().map(|row| row.ratio).fold(1.0, f64::max) * 1.1;
        let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|step| highest / step <= TICKS_MAX)
            .unwrap_or_else(|| (highest / TICKS_MAX).ceil());
        let ticks = (highest / step).ceil() as u32;
        Self { step, ticks }
    }

    fn y(&self, ratio: f64) -> f64 {
        let share = ratio / (self.step * f64::from(self.ticks));
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

fn axis(text: &mut String, scale: &Scale) {
    for tick in 0..=scale.ticks {
        let ratio = scale.step * f64::from(tick);
        let y = scale.y(ratio);
        line(text, y, r##"stroke="#dddddd""##);
        put(
            text,
            &format!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{ratio:.2}</text>"#,
                LEFT - 8.0,
                y + 4.5
            ),
        );
    }
}

fn legend(text: &mut String, rows: &[Row]) {
    let y = 50.0;
    let mut x = LEFT;
    let mut entry = |text: &mut String, sign: &str, label: &str, width: f64| {
        put(
            text,
            &format!(
                r#"<g transform="translate({x:.1} {y})">{sign}<text x="20">{label}</text></g>"#
            ),
        );
        x += width;
    };
    let first = rows.first().map(|row| row.operation);
    let group = rows.iter().filter(|row| Some(row.operation) == first);
    for (index, row) in group.enumerate() {
        let sign = format!(
            r#"<rect y="-11" width="14" height="14" fill="{}"/>"#,
            color(index)
        );
        let plural = if row.connections == 1 { "" } else { "s" };
        let label = format!("{} connection{plural}", row.connections);
        entry(text, &sign, &label, 140.0);
    }
    let sign =
        r##"<path d="M0 -4h14" stroke="#c0392b" stroke-width="1.5" stroke-dasharray="5 3"/>"##;
    entry(text, sign, "bare engine", 0.0);
}

fn bars(text: &mut String, scale: &Scale, group: &[Row], left: f64, width: f64) {
    let bar_width = width * GROUP_FILL / group.len() as f64;
    let first = left + width * (1.0 - GROUP_FILL) / 2.0;
    for (index, row) in group.iter().enumerate() {
        let x = first + bar_width * index as f64;
        let y = scale.y(row.ratio);
        put(
            text,
            &format!(
                r#"<rect x="{:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{}"/>"#,
                x + 2.0,
                bar_width - 4.0,
                scale.y(0.0) - y,
                color(index),
            ),
        );
        // The white edge keeps the number readable where the engine's line crosses it.
        put(
            text,
            &format!(
                r##"<text x="{:.1}" y="{:.1}" text-anchor="middle" stroke="#ffffff" stroke-width="3" paint-order="stroke">{:.2}</text>"##,
                x + bar_width / 2.0,
                y - 6.0,
                row.ratio
            ),
        );
    }
    let Some(row) = group.first() else { return };
    put(
        text,
        &format!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle" font-size="14">{}</text>"#,
            left + width / 2.0,
            HEIGHT - BOTTOM + 24.0,
            row.operation.name()
        ),
    );
}

fn line(text: &mut String, y: f64, style: &str) {
    let right = WIDTH - RIGHT;
    put(
        text,
        &format!(r#"<line x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}" {style}/>"#),
    );
}

fn color(index: usize) -> &'static str {
    COLORS[index % COLORS.len()]
}

fn put(text: &mut String, element: &str) {
    // Writing to a string does not fail.
    let _written = writeln!(text, "{element}");
}

#[cfg(test)]
mod tests {
    use super::super::load::Operation;
    use super::super::report::tests::row;
    use super::*;

    #[test]
    fn every_result_has_a_bar_and_its_number() {
        let rows = [
            row(Operation::Create, 1, 0.25),
            row(Operation::Create, 16, 1.5),
            row(Operation::GetMasked, 1, 0.5),
            row(Operation::GetMasked, 16, 0.75),
        ];

        let text = svg(&rows);

        for label in ["0.25", "1.50", "0.50", "0.75"] {
            let number = format!(r#"paint-order="stroke">{label}</text>"#);
            assert_eq!(text.matches(&number).count(), 1, "{label}");
        }
        for label in [
            "create",
            "get masked",
            "1 connection",
            "16 connections",
            "bare engine",
        ] {
            assert_eq!(
                text.matches(&format!(">{label}</text>")).count(),
                1,
                "{label}"
            );
        }
    }

    #[test]
    fn the_scale_holds_the_highest_bar_and_the_engine() {
        for ratio in [0.01, 0.9, 1.0, 1.3, 4.0, 70.0] {
            let scale = Scale::of(&[row(Operation::Create, 1, ratio)]);

            for value in [ratio, 1.0] {
                let y = scale.y(value);
                assert!(
                    (TOP..=HEIGHT - BOTTOM).contains(&y),
                    "{value} of {ratio}: {y}"
                );
            }
        }
    }

    #[test]
    fn no_results_still_make_a_picture() {
        assert!(svg(&[]).ends_with("</svg>\n"));
    }
}
