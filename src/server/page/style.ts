/** The one stylesheet of the product's own pages. */
export const STYLE = `:root { color-scheme: light dark; --line: #8886; --soft: #7779; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { margin: 0 0 .5rem; }
.demo { margin: 0; padding: .5rem 1rem; background: #b35900; color: #fff; font-weight: 600; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
.facts dt { color: GrayText; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.columns { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
ol { padding-left: 2.2rem; }
li { overflow-wrap: anywhere; }
small { color: GrayText; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .25rem; }
/* The renderer of the reference knows only light colours. */
#reference { color-scheme: light; overflow-x: auto; background: #fff; border-radius: .25rem; }
.gap { color: #b35900; font-weight: 600; }
`
