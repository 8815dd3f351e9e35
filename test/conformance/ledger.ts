import { idsOf, readRules } from './rules.ts'

/** Rules that the benchmark proves by a figure. */
const MEASURED = new Set(['R-15'])

const CASE = /<testcase name="([^"]*)" classname="([^"]*)"[^>]*?(\/>|>(?:[\s\S]*?)<\/testcase>)/g
const entities: Record<string, string> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}
const unescaped = (text: string): string =>
  text.replace(/&(?:lt|gt|quot|apos|amp);/g, entity => entities[entity] ?? '')

/**
 * Returns the rule ids in the titles of passed tests and of their groups, from the runner's JUnit reports.
 */
export const provenIds = (reports: string[]): Set<string> =>
  new Set(
    reports.flatMap(report =>
      [...report.matchAll(CASE)]
        .filter(([, , , body = '']) => !/<(?:failure|skipped|error)\b/.test(body))
        .flatMap(([, name = '', groups = '']) => [name, ...unescaped(groups).split(' > ')])
        .flatMap(title => idsOf(unescaped(title))),
    ),
  )

/**
 * Differences between the rules and the runner's reports, one line each; empty when each rule has a passed
 * test.
 */
export const ledgerGaps = async (reports: string[]): Promise<string[]> => {
  const rules = await readRules()
  const ids = new Set(rules.map(({ id }) => id))
  const proven = provenIds(reports)
  return [
    ...rules
      .filter(({ id }) => !proven.has(id) && !MEASURED.has(id))
      .map(({ id, sentence, file }) => `${file}: no passed test names ${id}: ${sentence}`),
    ...[...proven]
      .filter(id => !ids.has(id))
      .map(id => `a test names ${id}, which is no rule of test/conformance/`),
  ]
}
