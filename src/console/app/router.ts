import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'

const here = () => location.pathname.replace(/\/+$/, '') || '/console'

/** Path and query of the current screen. */
export const path = signal(here())
export const query = signal(new URLSearchParams(location.search))

const follow = (): void => {
  path.value = here()
  query.value = new URLSearchParams(location.search)
}

/** The number of screens that were opened. */
const visits = signal(0)
/** True from the opening of a screen until the person presses a key or the pointer. */
let isArriving = false

/** Shows another screen, whose heading gets the focus. `replace` shows the same one at another address. */
export const go = (url: string, { replace = false } = {}): void => {
  history[replace ? 'replaceState' : 'pushState'](null, '', url)
  if (!replace) startVisit()
  follow()
}

/** Gives the focus to the next heading that is shown. */
export const startVisit = (): void => {
  isArriving = true
  visits.value++
}

const arrive = (): void => {
  if (!isArriving) return
  document.querySelector('h1')?.focus({ preventScroll: true })
  const place = document.getElementById(decoded(location.hash.slice(1)))
  if (place) place.scrollIntoView()
  else scrollTo({ top: 0 })
}

/** Moves the focus to the heading of a screen that was opened. A screen has several while it is loaded. */
export const useArrival = (): void => useLayoutEffect(arrive, [visits.value])

/** Follows links of the console without loading the page again. */
export const startRouter = (): void => {
  isArriving = location.hash !== ''
  addEventListener('popstate', follow)
  for (const event of ['keydown', 'pointerdown'])
    addEventListener(
      event,
      () => {
        isArriving = false
      },
      { capture: true },
    )
  document.addEventListener('click', event => {
    const link = (event.target as Element).closest('a')
    if (!link || link.target || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.origin !== location.origin || !link.pathname.startsWith('/console')) return
    // A place on this screen: the browser goes there.
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.pathname + link.search + link.hash)
  })
}

/** Decodes the escapes in a part of a path; malformed escapes stay. */
export const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
