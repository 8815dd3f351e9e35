import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Result {
  violations: { id: string; nodes: { target: string[] }[] }[]
}

/**
 * Returns the findings of axe on the page, as `rule: selector`. The debugger runs axe, because the page's
 * policy does not apply to the debugger.
 */
export const axeFindings = async (page: Page): Promise<string[]> => {
  // The colours of a running transition are those of neither state.
  await page.evaluate(async () => {
    const running = document.getAnimations().filter(each => each instanceof CSSTransition)
    await Promise.allSettled(running.map(({ finished }) => finished))
  })
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as Result
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}
