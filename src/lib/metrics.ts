/**
 * Metrics for Prometheus. Values are kept in memory and rendered as text on request.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
type Type = 'counter' | 'gauge' | 'histogram'
type Sample = [suffix: string, labels: string, value: number]

/** Name, help text and label of a counter or histogram. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly label: string
}

const labelled = (label: string, value: string): string =>
  `${label}="${value.replace(/["\\\n]/g, character => (character === '\n' ? '\\n' : `\\${character}`))}"`

/**
 * Upper bounds of the buckets in milliseconds. The first bounds fit answers without I/O. The last bound is
 * the time limit of an outbound call.
 */
const BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000] as const

interface Series {
  /** Number of values per bucket, not cumulative. The last bucket counts the values above all bounds. */
  buckets: number[]
  sum: number
}

/**
 * Returns the metrics of one server. Label values must come from a closed set, because values that clients
 * choose could fill the memory.
 */
export const openMetrics = () => {
  const known = new Map<string, { type: Type; help: string; samples(): Sample[] }>()
  const counters = new Map<Family, Map<string, number>>()
  const histograms = new Map<Family, Map<string, Series>>()

  const openCounter = (family: Family): Map<string, number> => {
    const counts = new Map<string, number>()
    const { name, help, label } = family
    const samples = () => [...counts].map(([value, count]): Sample => ['', labelled(label, value), count])
    known.set(name, { type: 'counter', help, samples })
    counters.set(family, counts)
    return counts
  }
  const openHistogram = (family: Family): Map<string, Series> => {
    const series = new Map<string, Series>()
    const { name, help, label } = family
    const samples = () =>
      [...series].flatMap(([value, observed]) => histogramSamples(labelled(label, value), observed))
    known.set(name, { type: 'histogram', help, samples })
    histograms.set(family, series)
    return series
  }

  return {
    /** Registers a family before its first value, so that dashboards and alerts find its name. */
    declare(type: 'counter' | 'histogram', family: Family): void {
      if (known.has(family.name)) return
      if (type === 'counter') openCounter(family)
      else openHistogram(family)
    },
    count(family: Family, value: string): void {
      const counts = counters.get(family) ?? openCounter(family)
      counts.set(value, (counts.get(value) ?? 0) + 1)
    },
    /** Records a duration in milliseconds. The rendered text shows seconds. */
    time(family: Family, value: string, ms: number): void {
      const series = histograms.get(family) ?? openHistogram(family)
      let observed = series.get(value)
      if (!observed) {
        observed = { buckets: new Array(BOUNDS.length + 1).fill(0), sum: 0 }
        series.set(value, observed)
      }
      let bucket = 0
      while (ms > (BOUNDS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
      observed.buckets[bucket] = (observed.buckets[bucket] ?? 0) + 1
      observed.sum += ms
    },
    /**
     * Registers a gauge. Each rendering calls `read` for the value. An earlier gauge of this name is
     * replaced.
     */
    gauge(name: string, help: string, read: () => number): void {
      known.set(name, { type: 'gauge', help, samples: () => [['', '', read()]] })
    },
    /** Returns all metrics in the text format, version 0.0.4. */
    render: (): string =>
      [...known]
        .flatMap(([name, { type, help, samples }]) => [
          `# HELP ${name} ${help}`,
          `# TYPE ${name} ${type}`,
          ...samples().map(
            ([suffix, labels, value]) => `${name}${suffix}${labels ? `{${labels}}` : ''} ${value}`,
          ),
        ])
        .join('\n')
        .concat('\n'),
  }
}

/**
 * Joins the metrics of several workers. Each sample gets the number of its worker as the label `worker`, and
 * the `HELP` and `TYPE` lines of each family appear once.
 */
export const joinMetrics = (pages: readonly (readonly [worker: number, page: string])[]): string => {
  const families = new Map<string, { head: string[]; samples: string[] }>()
  for (const [worker, page] of pages) {
    let samples: string[] = []
    for (const line of page.trim().split('\n')) {
      const [, kind, name = ''] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      const family = families.get(name) ?? { head: [], samples: [] }
      if (kind === undefined)
        samples.push(
          line.replace(/^(\w+)(?:\{(.*)\})? /, (_, metric, labels) => {
            const all = [`worker="${worker}"`, ...(labels ? [labels] : [])]
            return `${metric}{${all}} `
          }),
        )
      else {
        families.set(name, family)
        samples = family.samples
        if (!family.head.includes(line)) family.head.push(line)
      }
    }
  }
  return `${[...families.values()].flatMap(({ head, samples }) => [...head, ...samples]).join('\n')}\n`
}

export type Metrics = ReturnType<typeof openMetrics>

const histogramSamples = (labels: string, { buckets, sum }: Series): Sample[] => {
  let count = 0
  const cumulative = buckets.map((inBucket, i): Sample => {
    count += inBucket
    const bound = BOUNDS[i]
    return ['_bucket', `${labels},le="${bound === undefined ? '+Inf' : bound / 1000}"`, count]
  })
  return [...cumulative, ['_sum', labels, sum / 1000], ['_count', labels, count]]
}
