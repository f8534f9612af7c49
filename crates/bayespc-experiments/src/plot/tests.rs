//! What holds for every figure: well-formed, complete, finite, inside the page.

use proptest::prelude::*;
use roxmltree::Document;

use super::{DotPlot, DotSeries, Line, Panel, Scatter, dot_figure, figure};
use crate::error::Error;

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    document
        .descendants()
        .filter(|n| n.has_tag_name("text"))
        .map(|n| n.text().unwrap().trim().to_owned())
        .collect()
}

/// Every coordinate of the document: finite, and within the page it declares.
fn assert_inside_the_page(svg: &str) {
    let document = Document::parse(svg).unwrap();
    let view: Vec<f64> = document
        .root_element()
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|v| v.parse().unwrap())
        .collect();
    let within = |value: &str, limit: f64| {
        let value: f64 = value.parse().unwrap();
        assert!((-1.0..=limit + 1.0).contains(&value), "{value} outside 0..{limit}");
    };
    for node in document.descendants() {
        for (name, limit) in [("x", view[2]), ("cx", view[2]), ("y", view[3]), ("cy", view[3])] {
            if let Some(value) = node.attribute(name) {
                within(value, limit);
            }
        }
        for point in node.attribute("points").unwrap_or("").split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            within(x, view[2]);
            within(y, view[3]);
        }
    }
}

fn line(label: &str, x: Vec<f64>, y: Vec<f64>) -> Line {
    Line { label: label.into(), x, y, ..Line::default() }
}

#[test]
fn every_label_is_in_the_document_and_escaped() {
    let panel = Panel {
        title: "R&D <curves>".into(),
        x_label: "time \"t\" (s)".into(),
        y_label: "it's y".into(),
        lines: vec![line("a < b & c", vec![0.0, 1.0], vec![1.0, 2.0])],
        scatters: vec![Scatter { label: "data".into(), x: vec![0.5], y: vec![1.5], ..Scatter::default() }],
        ..Panel::default()
    };
    let found = texts(&figure(&[panel], 1, 480, 360).unwrap());
    for label in ["R&D <curves>", "time \"t\" (s)", "it's y", "a < b & c", "data"] {
        assert!(found.iter().any(|text| text == label), "{label} missing from {found:?}");
    }
}

#[test]
fn charts_with_the_same_labels_share_one_legend_and_others_have_their_own() {
    let panel =
        |label: &str| Panel { lines: vec![line(label, vec![0.0, 1.0], vec![0.0, 1.0])], ..Panel::default() };
    let count = |panels: &[Panel]| {
        texts(&figure(panels, 2, 800, 300).unwrap()).iter().filter(|t| t.starts_with("method")).count()
    };
    assert_eq!(count(&[panel("method a"), panel("method a")]), 1);
    assert_eq!(count(&[panel("method a"), panel("method b")]), 2);
}

#[test]
fn points_that_cannot_be_drawn_interrupt_the_line() {
    let polylines = |y: Vec<f64>, y_log: bool| {
        let panel =
            Panel { lines: vec![line("a", vec![1.0, 2.0, 3.0, 4.0, 5.0], y)], y_log, ..Panel::default() };
        let svg = figure(&[panel], 1, 400, 300).unwrap();
        // Blue is the first colour of the cycle; the legend holds one more stroke.
        svg.lines().filter(|l| l.starts_with("<polyline") && l.contains("#0072B2")).count() - 1
    };
    assert_eq!(polylines(vec![1.0, 2.0, 3.0, 4.0, 5.0], false), 1);
    assert_eq!(polylines(vec![1.0, 2.0, f64::NAN, 4.0, 5.0], false), 2);
    assert_eq!(polylines(vec![1.0, 2.0, f64::INFINITY, 4.0, 5.0], false), 2);
    assert_eq!(polylines(vec![1.0, 2.0, -3.0, 4.0, 5.0], false), 1);
    assert_eq!(polylines(vec![1.0, 2.0, -3.0, 4.0, 5.0], true), 2);
}

#[test]
fn a_chart_without_drawable_points_says_so() {
    let empty = Panel { lines: vec![line("a", vec![], vec![])], ..Panel::default() };
    let all_nan =
        Panel { lines: vec![line("a", vec![1.0, 2.0], vec![f64::NAN; 2])], y_log: true, ..Panel::default() };
    for panel in [Panel::default(), empty, all_nan] {
        assert!(texts(&figure(&[panel], 1, 400, 300).unwrap()).contains(&"no data".to_owned()));
    }
    assert!(texts(&dot_figure(&[DotPlot::default()], 1, 400, 300).unwrap()).contains(&"no data".to_owned()));
}

#[test]
fn what_cannot_be_drawn_is_an_error_that_names_the_culprit() {
    let panel = |line: Line| Panel { title: "t".into(), lines: vec![line], ..Panel::default() };
    let short = line("short", vec![1.0, 2.0], vec![1.0]);
    assert!(
        matches!(figure(&[panel(short)], 1, 400, 300), Err(Error::Length { what: "y", label, found: 1, expected: 2 }) if label == "short")
    );
    let narrow =
        Line { band: Some((vec![0.0], vec![1.0, 2.0])), ..line("b", vec![1.0, 2.0], vec![1.0, 2.0]) };
    assert!(matches!(figure(&[panel(narrow)], 1, 400, 300), Err(Error::Length { what: "lower band", .. })));
    let reversed = Panel { x_range: Some((1.0, 0.0)), ..Panel::default() };
    assert!(matches!(figure(&[reversed], 1, 400, 300), Err(Error::Range { axis: "x", .. })));
    let not_positive = Panel { y_range: Some((0.0, 1.0)), y_log: true, ..Panel::default() };
    assert!(matches!(figure(&[not_positive], 1, 400, 300), Err(Error::Range { axis: "y", .. })));
    assert!(matches!(figure(&[Panel::default()], 1, 60, 60), Err(Error::NoRoom { .. })));
    assert!(matches!(figure(&[Panel::default()], 0, 400, 300), Err(Error::EmptyFigure { what: "column" })));
    assert!(matches!(figure(&[], 1, 400, 300), Err(Error::EmptyFigure { what: "chart" })));
    let uneven = DotPlot {
        groups: vec!["a".into(), "b".into()],
        series: vec![DotSeries { values: vec![1.0], ..DotSeries::default() }],
        ..DotPlot::default()
    };
    assert!(matches!(dot_figure(&[uneven], 1, 400, 300), Err(Error::Length { what: "values", .. })));
}

/// Values as experiments produce them, and as they should not.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -10.0..10.0_f64,
        1 => proptest::num::f64::ANY,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(0.0),
    ]
}

proptest! {
    #[test]
    fn any_panel_is_well_formed_finite_and_inside_the_page(
        rows in prop::collection::vec((value(), value(), value(), value()), 0..30),
        x_log: bool, y_log: bool, identity_line: bool, ranged: bool, label in "\\PC{0,60}",
    ) {
        let column = |pick: fn(&(f64, f64, f64, f64)) -> f64| rows.iter().map(pick).collect::<Vec<f64>>();
        let (x, y) = (column(|r| r.0), column(|r| r.1));
        let panel = Panel {
            title: label.clone(),
            x_label: label.clone(),
            y_label: label.clone(),
            x_log,
            y_log,
            x_range: ranged.then_some((0.5, 2.0)),
            y_range: ranged.then_some((0.5, 2.0)),
            lines: vec![Line {
                band: Some((column(|r| r.2), column(|r| r.3))),
                dashed: identity_line,
                ..line(&label, x.clone(), y.clone())
            }],
            scatters: vec![Scatter { label, x, y, y_error: Some(column(|r| r.2)), ..Scatter::default() }],
            identity_line,
        };
        let svg = figure(&[panel.clone(), panel], 2, 900, 500).unwrap();
        assert_inside_the_page(&svg);
    }

    #[test]
    fn any_dot_plot_is_well_formed_finite_and_inside_the_page(
        rows in prop::collection::vec((value(), value()), 0..12), value_log: bool, name in "\\PC{0,80}",
    ) {
        let plot = DotPlot {
            title: name.clone(),
            value_log,
            groups: vec![name.clone(); rows.len()],
            series: vec![DotSeries {
                label: name,
                values: rows.iter().map(|r| r.0).collect(),
                errors: Some(rows.iter().map(|r| r.1).collect()),
                ..DotSeries::default()
            }],
            reference: rows.first().map(|r| r.1),
            ..DotPlot::default()
        };
        let svg = dot_figure(&[plot], 1, 600, 400).unwrap();
        assert_inside_the_page(&svg);
    }
}
