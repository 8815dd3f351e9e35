import type { Page } from 'playwright-core'

/**
 * Holds back the page's calls of the admin API with this method. `held` resolves at the first of these calls.
 */
export const holdCalls = async (page: Page, method: string) => {
  const held = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  await page.route('**/api/v1/admin/**', async route => {
    if (route.request().method() === method) {
      held.resolve()
      await released.promise
    }
    await route.continue()
  })
  return { held: held.promise, release: released.resolve }
}
