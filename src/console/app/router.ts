import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { hide } from './toast.tsx'

/** Decodes the percent escapes in a part of a path. Returns a part with malformed escapes unchanged. */
export const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const here = () => location.pathname.replace(/\/+$/, '') || '/console'

const placeHere = () => decoded(location.hash.slice(1))

/** Path, query and fragment of the current screen. */
export const path = signal(here())
export const query = signal(new URLSearchParams(location.search))
export const fragment = signal(placeHere())

/** Shows the screen of the current address. */
export const follow = (): void => {
  path.value = here()
  query.value = new URLSearchParams(location.search)
  fragment.value = placeHere()
}

/**
 * Number of screens that `go`, Back and Forward have opened so far. Opening the current screen again also
 * counts. It resets the screen.
 */
export const opened = signal(0)
/**
 * Number of visits so far. A visit begins when `go`, Back or Forward opens a screen, or when a screen
 * replaces its content.
 */
const visits = signal(0)
/**
 * The way in which the current screen was opened. Undefined after the person has pressed a key or a pointer
 * button, and for the first screen of the page unless the address has a fragment.
 */
let arrival: 'link' | 'history' | undefined

/**
 * Shows another screen. The heading of the screen gets the focus, so that screen readers announce the screen.
 * If `replace` is true, only the address of the current screen changes.
 */
export const go = (url: string, { replace = false } = {}): void => {
  history[replace ? 'replaceState' : 'pushState'](null, '', url)
  if (!replace) {
    startVisit()
    opened.value++
  }
  follow()
}

const unsaved = new Set<object>()
/** The navigation that waits until the person has decided whether unsaved changes may be lost. */
export const leaving = signal<(() => void) | undefined>(undefined)

/** While `isChanged` is true, the console asks before the person leaves the screen. */
export const useUnsaved = (isChanged: boolean): void =>
  useLayoutEffect(() => {
    if (!isChanged) return
    const form = {}
    unsaved.add(form)
    return () => {
      unsaved.delete(form)
    }
  }, [isChanged])

/**
 * Runs a step that leaves the screen. If there are unsaved changes, the step waits for the person's consent.
 */
export const leave = (step: () => void): void => {
  const proceed = () => {
    hide()
    step()
  }
  if (unsaved.size === 0) proceed()
  else
    leaving.value = () => {
      unsaved.clear()
      proceed()
    }
}

/** Starts a visit: the heading that is shown next gets the focus. */
export const startVisit = (by: typeof arrival = 'link'): void => {
  arrival = by
  visits.value++
}

/**
 * Opens the form section that contains the element. The section is visible before this function returns, so
 * that the element can get the focus.
 */
export const reveal = (element: Element): void => {
  const panel = element.closest<HTMLElement>('[role=tabpanel]')
  if (!panel?.hidden) return
  panel.hidden = false
  go(`#${panel.dataset.section}`, { replace: true })
}

const arrive = (): void => {
  if (!arrival) return
  document.querySelector('h1')?.focus({ preventScroll: true })
  // After Back or Forward the browser restores the scroll position.
  if (arrival === 'history') return
  const place = document.getElementById(placeHere())
  if (place) place.scrollIntoView()
  else scrollTo({ top: 0 })
}

/**
 * Moves the focus to the heading of an opened screen. Each heading calls this hook, because a screen gets a
 * new heading when it has loaded.
 */
export const useArrival = (): void => useLayoutEffect(arrive, [visits.value])

/**
 * Gives the focus to the heading when the element that had it is removed, such as a button whose action has
 * succeeded. Otherwise the body would have the focus, and screen readers would start at the top of the page.
 */
const keepFocus = (): void => {
  let focused: Element | undefined
  addEventListener('focusin', ({ target }) => {
    focused = target as Element
  })
  new MutationObserver(() => {
    if (!focused || focused.isConnected || document.activeElement !== document.body) return
    // Behind a modal dialog the heading of the screen cannot get the focus.
    const heading = document.querySelector<HTMLElement>('dialog[open] h2') ?? document.querySelector('h1')
    heading?.focus({ preventScroll: true })
  }).observe(document.body, { childList: true, subtree: true })
}

/**
 * Handles links of the console, Back and Forward, so that they show a screen without a reload of the page.
 */
export const startRouter = (): void => {
  keepFocus()
  if (location.hash !== '') arrival = 'link'
  addEventListener('popstate', () => {
    // When only the fragment changes, path and query stay the same and no visit starts.
    if (here() !== path.value || String(new URLSearchParams(location.search)) !== String(query.value)) {
      if (unsaved.size > 0) {
        // The browser already shows the address of the next screen. Until the person has answered, the
        // address of the current screen is shown again.
        const search = query.value.size > 0 ? `?${query.value}` : ''
        const hash = fragment.value === '' ? '' : `#${encodeURIComponent(fragment.value)}`
        history.pushState(null, '', path.value + search + hash)
        return leave(() => history.back())
      }
      hide()
      startVisit('history')
      opened.value++
    }
    follow()
  })
  addEventListener('beforeunload', event => {
    if (unsaved.size > 0) event.preventDefault()
  })
  for (const event of ['keydown', 'pointerdown'])
    addEventListener(
      event,
      () => {
        arrival = undefined
      },
      { capture: true },
    )
  document.addEventListener('click', event => {
    const link = (event.target as Element).closest('a')
    if (!link || link.target || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.origin !== location.origin || !link.pathname.startsWith('/console')) return
    if (link.hash === '#content') {
      // This link skips the menu. The fragment of the address stays, because it names the open section of a
      // form.
      event.preventDefault()
      return document.getElementById('content')?.focus()
    }
    // The link leads to a fragment of this screen, to which the browser scrolls.
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    leave(() => go(link.pathname + link.search + link.hash))
  })
}
