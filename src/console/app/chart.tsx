import { dayOf, joined, number, words } from './words.ts'

/** Counts of one day. */
export interface Point {
  start: string
  logins: number
  failed_logins: number
  new_users: number
  active_users: number
  tokens: number
}

const WIDTH = 720
const FOOT = 24
/** Minimum number of days that are shown, so that a few bars do not fill the chart. */
const FEWEST = 7

/** Returns the smallest of the numbers 1, 2, 5, 10, 20, … that is at least `value`. */
const ceiling = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)))
  return ([1, 2, 5, 10].find(step => step * power >= value) ?? 10) * power
}

/**
 * Shows logins and failed logins by day as bars. The chart starts with the first day that has a login or a
 * failed login. It shows at least the last seven days. Screen readers get the numbers of all days in a table.
 * If no day has a login or a failed login, nothing is shown.
 */
export const Chart = ({ points: all }: { points: Point[] }) => {
  const first = all.findIndex(({ logins, failed_logins }) => logins + failed_logins > 0)
  const points = first < 0 ? [] : all.slice(Math.max(0, Math.min(first, all.length - FEWEST)))
  if (points.length === 0) return null
  const isShort = points.length <= 2 * FEWEST
  const height = isShort ? 120 : 200
  const between = Math.ceil((points.length - 2) / 4)
  const top = Math.max(
    4,
    ceiling(Math.max(...points.map(({ logins, failed_logins }) => logins + failed_logins))),
  )
  const step = WIDTH / points.length
  const bar = Math.min(step * 0.68, 28)
  const scale = (count: number) => (count / top) * (height - FOOT)
  return (
    <figure class="chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        style={{ height }}
        aria-hidden="true"
        preserveAspectRatio="none"
      >
        {[0, 0.5, 1].map(part => {
          const y = height - FOOT - part * (height - FOOT) + (part === 1 ? 0.5 : 0)
          return <line key={part} x1="0" x2={WIDTH} y1={y} y2={y} class="grid" />
        })}
        {points.map(({ start, logins, failed_logins }, n) => {
          const x = n * step + (step - bar) / 2
          const [good, bad] = [scale(logins), scale(failed_logins)]
          return (
            <g key={start}>
              <title>
                {joined([
                  dayOf(start),
                  `${words.overview.logins}: ${number(logins)}`,
                  `${words.overview.failed}: ${number(failed_logins)}`,
                ])}
              </title>
              <rect x={n * step} y="0" width={step} height={height - FOOT} class="hover" />
              {logins > 0 && (
                <rect x={x} y={height - FOOT - good} width={bar} height={good} rx="2" class="good" />
              )}
              {failed_logins > 0 && (
                <rect
                  x={x}
                  y={height - FOOT - good - bad - (good > 0 ? 1.5 : 0)}
                  width={bar}
                  height={bad}
                  rx="2"
                  class="bad"
                />
              )}
            </g>
          )
        })}
      </svg>
      <div class="axis" aria-hidden="true">
        {[0, 1, 2, 3].map(n => {
          const ago = n * between
          const { start } = points.at(-1 - ago) ?? {}
          const right = `${(ago / points.length) * 100}%`
          const width = isShort ? `${100 / points.length}%` : 'auto'
          return (
            start && (
              <span key={ago} style={{ right, width }}>
                {dayOf(start)}
              </span>
            )
          )
        })}
      </div>
      <span class="scale" aria-hidden="true">
        {number(top)}
      </span>
      <div class="unseen">
        <table>
          <caption>{words.overview.byDay}</caption>
          <thead>
            <tr>
              <th scope="col">{words.overview.day}</th>
              <th scope="col">{words.overview.logins}</th>
              <th scope="col">{words.overview.failed}</th>
            </tr>
          </thead>
          <tbody>
            {all.map(({ start, logins, failed_logins }) => (
              <tr key={start}>
                <th scope="row">{dayOf(start)}</th>
                <td>{logins}</td>
                <td>{failed_logins}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}
