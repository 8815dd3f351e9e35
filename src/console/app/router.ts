import { signal } from '@preact/signals'

const here = () => location.pathname.replace(/\/+$/, '') || '/console'

/** Path and query of the current screen. */
export const path = signal(here())
export const query = signal(new URLSearchParams(location.search))

const follow = (): void => {
  path.value = here()
  query.value = new URLSearchParams(location.search)
}

/** Shows another screen; the heading gets the focus, as after a page load. */
export const go = (url: string, { replace = false } = {}): void => {
  history[replace ? 'replaceState' : 'pushState'](null, '', url)
  follow()
}

/** Moves focus and title to the screen that was opened. */
export const announce = (): void => {
  const heading = document.querySelector('h1')
  heading?.focus({ preventScroll: true })
  const place = document.getElementById(decoded(location.hash.slice(1)))
  if (place) place.scrollIntoView()
  else scrollTo({ top: 0 })
}

/** Follows links of the console without loading the page again. */
export const startRouter = (): void => {
  addEventListener('popstate', follow)
  document.addEventListener('click', event => {
    const link = (event.target as Element).closest('a')
    if (!link || link.target || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.origin !== location.origin || !link.pathname.startsWith('/console')) return
    // A place on this screen: the browser goes there.
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.pathname + link.search + link.hash)
    announce()
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
