/**
 * What the process counts for Prometheus. Counting is an addition in memory; text is made when somebody asks.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
type Type = 'counter' | 'gauge' | 'histogram'
type Sample = [suffix: string, labels: string, value: number]

const metrics = new Map<string, { type: Type; help: string; samples(): Sample[] }>()

const labelled = (label: string, value: string): string =>
  `${label}="${value.replace(/["\\\n]/g, character => (character === '\n' ? '\\n' : `\\${character}`))}"`

/** Values of labels come from closed sets of ours: what strangers write would fill the memory. */
export const counter = (name: string, help: string, label: string): ((value: string) => void) => {
  const counts = new Map<string, number>()
  const samples = () => [...counts].map(([value, count]): Sample => ['', labelled(label, value), count])
  metrics.set(name, { type: 'counter', help, samples })
  return value => void counts.set(value, (counts.get(value) ?? 0) + 1)
}

/** Asked when the text is made. */
export const gauge = (name: string, help: string, read: () => number): void => {
  metrics.set(name, { type: 'gauge', help, samples: () => [['', '', read()]] })
}

const BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000] as const

interface Observed {
  /** How many fell between a bound and the one before it; the last is past all of them. */
  buckets: number[]
  sum: number
}

/** Durations: given in milliseconds, told in seconds. */
export const histogram = (
  name: string,
  help: string,
  label: string,
): ((value: string, ms: number) => void) => {
  const series = new Map<string, Observed>()
  const samples = () =>
    [...series].flatMap(([value, { buckets, sum }]): Sample[] => {
      const labels = labelled(label, value)
      let count = 0
      const cumulative = buckets.map((inBucket, i): Sample => {
        count += inBucket
        const bound = BOUNDS[i]
        return ['_bucket', `${labels},le="${bound === undefined ? '+Inf' : bound / 1000}"`, count]
      })
      return [...cumulative, ['_sum', labels, sum / 1000], ['_count', labels, count]]
    })
  metrics.set(name, { type: 'histogram', help, samples })
  return (value, ms) => {
    let observed = series.get(value)
    if (!observed) {
      observed = { buckets: new Array(BOUNDS.length + 1).fill(0), sum: 0 }
      series.set(value, observed)
    }
    let bucket = 0
    while (ms > (BOUNDS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
    observed.buckets[bucket] = (observed.buckets[bucket] ?? 0) + 1
    observed.sum += ms
  }
}

/** All of them, in the text format of version 0.0.4. */
export const renderMetrics = (): string =>
  [...metrics]
    .flatMap(([name, { type, help, samples }]) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...samples().map(
        ([suffix, labels, value]) => `${name}${suffix}${labels ? `{${labels}}` : ''} ${value}`,
      ),
    ])
    .join('\n')
    .concat('\n')
