//! The style of a standalone SVG.
//!
//! The palette is Okabe and Ito's, safe for colour-blind readers, ordered so that neighbours also
//! differ in lightness. Lines also differ by their dashes, for black-and-white print.

/// Style of a standalone SVG; renderers ignore what they do not know (dark mode).
pub(super) const STYLE: &str = "<style>
.paper{fill:#fff}
text{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:11px;fill:#444}
.title{font-size:16px;font-weight:bold;fill:#1a1a1a}
.note{fill:#666}
.name{font-size:12px;fill:#222}
.rule{stroke:#e3e3e3;stroke-width:1}
.tick-line{stroke:#888;stroke-width:1}
.band{fill:#5b6b7b;fill-opacity:0.08;stroke:#5b6b7b;stroke-opacity:0.35;stroke-width:0.5}
.thin{stroke:none}
.d1{fill-opacity:0.13}.d2{fill-opacity:0.18}
.band-name{fill:#3c4a58}
.mark{stroke:#555;stroke-width:1;stroke-dasharray:3 3}
.mark-name{fill:#333}
.limit{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:8 4}
.limit-name{fill:#b3261e}
.peak-dot{fill:#1a1a1a;stroke:#fff;stroke-width:1}
.peak-span{stroke:#1a1a1a;stroke-width:2;stroke-dasharray:4 2}
.peak-name{font-weight:bold;fill:#1a1a1a}
.nothing{font-size:14px;fill:#777}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.area{stroke-width:0.5;fill-opacity:0.9}
.line.c0{stroke:#0072b2}.area.c0{fill:#0072b2;stroke:#0072b2}
.line.c1{stroke:#e69f00;stroke-dasharray:7 3}.area.c1{fill:#e69f00;stroke:#e69f00}
.line.c2{stroke:#009e73;stroke-dasharray:3 2}.area.c2{fill:#009e73;stroke:#009e73}
.line.c3{stroke:#cc79a7;stroke-dasharray:9 3 2 3}.area.c3{fill:#cc79a7;stroke:#cc79a7}
.line.c4{stroke:#56b4e9;stroke-dasharray:12 4}.area.c4{fill:#56b4e9;stroke:#56b4e9}
.line.c5{stroke:#d55e00;stroke-dasharray:5 2 1 2}.area.c5{fill:#d55e00;stroke:#d55e00}
.line.c6{stroke:#8c6bb1;stroke-dasharray:1 2}.area.c6{fill:#8c6bb1;stroke:#8c6bb1}
.line.c7{stroke:#7f7f7f}.area.c7{fill:#9a9a9a;stroke:#9a9a9a}
.line.c8{stroke:#b5b5b5;stroke-dasharray:2 4}.area.c8{fill:#d9d9d9;stroke:#bdbdbd}
@media (prefers-color-scheme:dark){
.paper{fill:#14181d}text,.note{fill:#aab4bf}.title,.name,.peak-name{fill:#eef2f6}
.rule{stroke:#2b323a}.tick-line{stroke:#6b7683}
.band{fill:#9fb3c8;stroke:#9fb3c8}.band-name,.mark-name{fill:#c9d3dd}.mark{stroke:#aab4bf}
.limit{stroke:#ff8a80}.limit-name{fill:#ff8a80}.peak-dot{fill:#eef2f6;stroke:#14181d}
.peak-span{stroke:#eef2f6}.area.c8{fill:#4a525b;stroke:#5d6670}
}
</style>";
