//! A chart as SVG.

use super::{Chart, Form};

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Its width in pixels.
    pub width: f64,
    /// Its height in pixels.
    pub height: f64,
    /// Whether it stands alone: with title, legend and its own colours. In a page these are
    /// the page's.
    pub alone: bool,
}

/// Draws a chart: for now only as much of it as the page needs to be looked at.
pub fn draw(chart: &Chart, look: Look) -> String {
    let (left, above, right, below) = (64.0, 20.0, 16.0, 28.0);
    let (w, h) = (look.width - left - right, look.height - above - below);
    let heat = chart.form == Form::Heat;
    let highest = chart.highest().map_or(1.0, |peak| peak.value);
    let top = if heat { chart.series.len() as f64 } else { nice(highest / 5.0) * (highest / nice(highest / 5.0)).ceil() };
    let end = chart.timeline.end;
    let x = |t: f64| left + t / end * w;
    let y = |v: f64| above + h - v / top * h;
    let esc = |t: &str| t.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut o = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: highest {}\" data-plot=\"{left} {above} {w} {h}\" data-x=\"0 {end}\" data-y=\"0 {top}\">",
        look.width, look.height, esc(&chart.title), chart.scale.shown(highest)
    );
    o += "<g class=\"bands\">";
    for b in &chart.timeline.bands {
        o += &format!("<rect class=\"band d{}\" x=\"{:.1}\" y=\"{above}\" width=\"{:.1}\" height=\"{h}\"/><text class=\"band-name\" x=\"{:.1}\" y=\"{}\">{}</text>", b.depth, x(b.from), x(b.to) - x(b.from), x(b.from) + 4.0, above - 6.0 + 12.0 * b.depth as f64, esc(&b.name));
    }
    o += "</g><g class=\"grid\">";
    let step = nice(highest / 5.0);
    if !heat {
        for i in 0..=(top / step).round() as usize {
            let yy = y(i as f64 * step);
            o += &format!("<line class=\"rule\" x1=\"{left}\" x2=\"{}\" y1=\"{yy:.1}\" y2=\"{yy:.1}\"/>", left + w);
        }
    }
    o += "</g><g class=\"series\">";
    let mut base = vec![0.0; chart.times.len()];
    for (row, s) in chart.series.iter().enumerate() {
        if heat {
            for (i, v) in s.values.iter().enumerate() {
                let to = chart.times.get(i + 1).copied().unwrap_or(end);
                let hh = h / top;
                o += &format!("<rect class=\"cell\" style=\"fill:rgb(0 114 178/{:.2})\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{hh:.1}\"/>", v.clamp(0.0, 1.0), x(chart.times[i]), above + row as f64 * hh, x(to) - x(chart.times[i]));
            }
            continue;
        }
        let mut d = String::new();
        let mut pen = false;
        let stacked = chart.form.is_stacked();
        let mut lower = vec![];
        for (i, v) in s.values.iter().enumerate() {
            if !v.is_finite() {
                if !stacked { pen = false; }
                lower.push((chart.times[i], base[i]));
                if stacked { d += &format!("{}{:.1} {:.1}", if pen { "L" } else { "M" }, x(chart.times[i]), y(base[i])); pen = true; }
                continue;
            }
            let from = base[i];
            if stacked { base[i] += v; }
            let value = if stacked { base[i] } else { *v };
            if chart.form.looks_back() && i > 0 {
                let t0 = chart.times[i - 1];
                d += &format!("{}{:.1} {:.1}", if pen { "L" } else { "M" }, x(t0), y(value));
                pen = true;
                lower.push((t0, from));
            }
            d += &format!("{}{:.1} {:.1}", if pen { "L" } else { "M" }, x(chart.times[i]), y(value));
            pen = true;
            lower.push((chart.times[i], from));
        }
        if stacked {
            for (t, v) in lower.iter().rev() {
                d += &format!("L{:.1} {:.1}", x(*t), y(*v));
            }
            d.push('Z');
        }
        o += &format!("<path class=\"{} c{}\" d=\"{d}\"/>", if stacked { "area" } else { "line" }, s.colour % 8);
    }
    o += "</g><g class=\"limits\">";
    for l in chart.limits.iter().filter(|l| l.value <= top) {
        let yy = y(l.value);
        o += &format!("<line class=\"limit\" x1=\"{left}\" x2=\"{}\" y1=\"{yy:.1}\" y2=\"{yy:.1}\"/><text class=\"limit-name\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>", left + w, left + w - 4.0, yy - 4.0, esc(&l.name));
    }
    o += "</g><g class=\"marks\">";
    for m in &chart.timeline.marks {
        o += &format!("<line class=\"mark\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{above}\" y2=\"{1}\"/><text class=\"mark-name\" x=\"{2:.1}\" y=\"{3}\">{4}</text>", x(m.at), above + h, x(m.at) + 3.0, above + 12.0, esc(&m.text));
    }
    o += "</g><g class=\"peak\">";
    if let Some(p) = chart.peak {
        o += &format!("<circle class=\"peak-dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/><text class=\"peak-name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", x(p.at), y(p.value), x(p.at) + 7.0, y(p.value) - 5.0, chart.scale.shown(p.value));
    }
    o += "</g><g class=\"axis x\">";
    for i in 0..=6 {
        let t = end / 6.0 * f64::from(i);
        o += &format!("<line class=\"tick-line\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"tick\" text-anchor=\"middle\" x=\"{0:.1}\" y=\"{3}\">{4:.0} s</text>", x(t), above + h, above + h + 4.0, above + h + 17.0, t);
    }
    o += "</g><g class=\"axis y\">";
    if heat {
        for (i, s) in chart.series.iter().enumerate() {
            o += &format!("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>", left - 8.0, above + (i as f64 + 0.5) * h / top + 4.0, esc(&s.name));
        }
    } else {
        for i in 0..=(top / step).round() as usize {
            let v = i as f64 * step;
            o += &format!("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>", left - 8.0, y(v) + 4.0, chart.scale.shown(v).replace(" cores", ""));
        }
    }
    o + "</g></svg>"
}

fn nice(least: f64) -> f64 {
    if least <= 0.0 { return 1.0; }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|d| d * power).find(|s| *s >= least).unwrap_or(power)
}
