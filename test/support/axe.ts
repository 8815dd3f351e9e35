import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Result {
  violations: { id: string; nodes: { target: string[] }[] }[]
}

/**
 * Returns what axe finds on the page, as `rule: selector`. It is evaluated through the debugger, which the page's
 * policy does not bind.
 */
export const axeFindings = async (page: Page): Promise<string[]> => {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as Result
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}
