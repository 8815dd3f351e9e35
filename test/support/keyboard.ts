import type { Locator, Page } from 'playwright-core'

/** More than the number of focusable elements on any screen. */
const LONGEST = 150

/** Operates a page by its keyboard alone. */
export const keyboardOf = (page: Page) => {
  const { keyboard } = page
  const isFocused = (target: Locator) =>
    target.evaluate(element => element === element.ownerDocument.activeElement)
  /** Presses Tab until the element has the focus. */
  const reach = async (target: Locator): Promise<void> => {
    await target.waitFor()
    for (let pressed = 0; !(await isFocused(target)); pressed++) {
      if (pressed === LONGEST) throw new Error(`Tab does not reach ${target}`)
      await keyboard.press('Tab')
    }
  }
  const press = async (target: Locator, key = 'Enter'): Promise<void> => {
    await reach(target)
    await keyboard.press(key)
  }
  return {
    reach,
    press,
    button: (name: string | RegExp) =>
      press(page.getByRole('button', { name, exact: typeof name === 'string' }).first()),
    /** Replaces the text of the field with this label. */
    type: async (label: string, text: string): Promise<void> => {
      await reach(page.getByLabel(label, { exact: true }).first())
      await keyboard.press('Control+a')
      await keyboard.type(text)
    },
    /** Opens a screen or an object through the search of the console (Ctrl+K). */
    goTo: async (text: string, option: string | RegExp): Promise<void> => {
      await keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search or go to' }).waitFor()
      await keyboard.type(text)
      const found = page.getByRole('option', { name: option }).first()
      await found.waitFor()
      while ((await found.getAttribute('aria-selected')) !== 'true') await keyboard.press('ArrowDown')
      await keyboard.press('Enter')
    },
  }
}
