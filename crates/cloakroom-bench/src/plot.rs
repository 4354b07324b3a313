//! SVG charts of ratios: grouped bars and a reference line at 1.

use std::fmt::Write;

const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 52.0;
const LEGEND_ENTRY: f64 = 140.0;
/// Share of a group's width that its bars take.
const GROUP_FILL: f64 = 0.8;
/// Maximum number of grid lines.
const TICKS_MAX: f64 = 8.0;
/// From light to dark, distinguishable in grayscale.
const COLORS: [&str; 3] = ["#9ecae1", "#4292c6", "#08519c"];

/// Grouped bars of ratios with a reference line.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) heading: &'static str,
    /// Label of the reference line.
    pub(crate) reference: String,
    /// Labels of the bars of each group.
    pub(crate) series: Vec<String>,
    pub(crate) groups: Vec<Group>,
    pub(crate) width: f64,
}

pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) ratios: Vec<f64>,
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let scale = Scale::of(&self.groups, self.width);
        let Self {
            title,
            heading,
            width,
            ..
        } = self;
        let mut text = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img" font-family="sans-serif" font-size="13" fill="#222222">
<title>{title}</title>
<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{heading}</text>
"##
        );
        axis(&mut text, &scale);
        self.legend(&mut text);
        let group_width = (width - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            let left = LEFT + group_width * index as f64;
            bars(&mut text, &scale, group, left, group_width);
        }
        let style = r##"stroke="#c0392b" stroke-width="1.5" stroke-dasharray="6 4""##;
        line(&mut text, &scale, 1.0, style);
        text.push_str("</svg>\n");
        text
    }

    fn legend(&self, text: &mut String) {
        let y = 50.0;
        let mut x = LEFT;
        let mut entry = |text: &mut String, sign: &str, label: &str| {
            put(
                text,
                &format!(
                    r#"<g transform="translate({x:.1} {y})">{sign}<text x="20">{label}</text></g>"#
                ),
            );
            x += LEGEND_ENTRY;
        };
        for (index, label) in self.series.iter().enumerate() {
            let color = color(index);
            let sign = format!(r#"<rect y="-11" width="14" height="14" fill="{color}"/>"#);
            entry(text, &sign, label);
        }
        let sign =
            r##"<path d="M0 -4h14" stroke="#c0392b" stroke-width="1.5" stroke-dasharray="5 3"/>"##;
        entry(text, sign, &self.reference);
    }
}

/// Maps ratios to y coordinates.
struct Scale {
    step: f64,
    ticks: u32,
    width: f64,
}

impl Scale {
    /// Includes the reference line, with space for labels above.
    fn of(groups: &[Group], width: f64) -> Self {
        let ratios = groups.iter().flat_map(|group| &group.ratios);
        let highest = ratios.copied().fold(1.0, f64::max) * 1.1;
        let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|step| highest / step <= TICKS_MAX)
            .unwrap_or_else(|| (highest / TICKS_MAX).ceil());
        let ticks = (highest / step).ceil() as u32;
        Self { step, ticks, width }
    }

    fn y(&self, ratio: f64) -> f64 {
        let share = ratio / (self.step * f64::from(self.ticks));
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

fn axis(text: &mut String, scale: &Scale) {
    for tick in 0..=scale.ticks {
        let ratio = scale.step * f64::from(tick);
        line(text, scale, ratio, r##"stroke="#dddddd""##);
        put(
            text,
            &format!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{ratio:.2}</text>"#,
                LEFT - 8.0,
                scale.y(ratio) + 4.5
            ),
        );
    }
}

fn bars(text: &mut String, scale: &Scale, group: &Group, left: f64, width: f64) {
    let bar_width = width * GROUP_FILL / group.ratios.len().max(1) as f64;
    let first = left + width * (1.0 - GROUP_FILL) / 2.0;
    for (index, &ratio) in group.ratios.iter().enumerate() {
        let x = first + bar_width * index as f64;
        let y = scale.y(ratio);
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
        // The white outline keeps the number readable where the reference line crosses it.
        put(
            text,
            &format!(
                r##"<text x="{:.1}" y="{:.1}" text-anchor="middle" stroke="#ffffff" stroke-width="3" paint-order="stroke">{ratio:.2}</text>"##,
                x + bar_width / 2.0,
                y - 6.0,
            ),
        );
    }
    put(
        text,
        &format!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle" font-size="14">{}</text>"#,
            left + width / 2.0,
            HEIGHT - BOTTOM + 24.0,
            group.name
        ),
    );
}

fn line(text: &mut String, scale: &Scale, ratio: f64, style: &str) {
    let (y, right) = (scale.y(ratio), scale.width - RIGHT);
    put(
        text,
        &format!(r#"<line x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}" {style}/>"#),
    );
}

fn color(index: usize) -> &'static str {
    COLORS[index % COLORS.len()]
}

fn put(text: &mut String, element: &str) {
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{element}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(groups: &[(&str, &[f64])]) -> Chart {
        Chart {
            title: "Ratios",
            heading: "Some ratios",
            reference: "bare engine".to_owned(),
            series: ["1 connection", "16 connections"].map(str::to_owned).into(),
            groups: groups
                .iter()
                .map(|(name, ratios)| Group {
                    name: (*name).to_owned(),
                    ratios: ratios.to_vec(),
                })
                .collect(),
            width: 760.0,
        }
    }

    #[test]
    fn every_bar_has_its_number() {
        let text = chart(&[("create", &[0.25, 1.5]), ("get masked", &[0.5, 0.75])]).svg();

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
    fn the_scale_includes_the_highest_bar_and_the_reference_line() {
        for ratio in [0.01, 0.9, 1.0, 1.3, 4.0, 70.0] {
            let scale = Scale::of(&chart(&[("create", &[ratio])]).groups, 760.0);

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
    fn a_chart_without_results_is_valid() {
        assert!(chart(&[]).svg().ends_with("</svg>\n"));
    }
}
