const SVG = 'http://www.w3.org/2000/svg'

/** Adds a cursor to the chart of an item: a line at the day under the pointer, and the numbers of that day. */
export function setUpItemChart() {
  const chart = document.querySelector('.over-time svg')
  if (!(chart instanceof SVGSVGElement)) return
  const line = chart.appendChild(document.createElementNS(SVG, 'path'))
  const label = chart.appendChild(document.createElementNS(SVG, 'text'))
  line.setAttribute('class', 'cursor')
  label.setAttribute('class', 'cursor')
  // Between the ranks and the points.
  label.setAttribute('x', '72')
  label.setAttribute('y', '240')
  const move = ({ target }: Event) => {
    const day = target instanceof SVGRectElement && target.classList.contains('day') ? target : null
    if (!day) return
    const { x, y, width, height } = day.getBBox()
    line.setAttribute('d', `M${x + width / 2} ${y}v${height}`)
    label.textContent = day.textContent
  }
  for (const type of ['pointermove', 'pointerdown']) chart.addEventListener(type, move)
  chart.addEventListener('pointerleave', () => {
    line.removeAttribute('d')
    label.textContent = ''
  })
}
