import { idsOf, readRules } from './rules.ts'

/** Rules that no test proves. The benchmark measures them. */
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
 * Reads JUnit reports of the test runner. Returns the rule ids in the titles of passed tests and in the
 * titles of their groups.
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
 * Returns one line for each difference between the rules and the runner's reports. The list is empty if each
 * rule has a passed test.
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
