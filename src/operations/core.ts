import type { Core } from '#src/context.ts'
import { openHashes } from '#src/directory/users/password.ts'
import { proxyList } from '#src/http/client-address.ts'
import { cookieNames } from '#src/http/cookies.ts'
import { openCharges } from '#src/http/rate-limits.ts'
import { openThemes } from '#src/pages/themes.ts'
import { openPlaces } from '#src/sessions/geoip.ts'

/**
 * Creates the core of one server from parts that are already open, such as the store and the log. The core
 * has its own limits, queues and caches.
 */
export const openCore = (
  parts: Pick<Core, 'config' | 'store' | 'clock' | 'log' | 'fetch' | 'xml' | 'mail' | 'master'>,
): Core => ({
  ...parts,
  cookies: cookieNames(parts.config),
  proxies: proxyList(parts.config.trusted_proxies),
  themes: openThemes(parts),
  places: openPlaces(parts.config, parts.log),
  charges: openCharges(parts.config.workers),
  attempts: new Map(),
  documents: new Map(),
  backups: new Set(),
  tails: { open: new Set(), reading: undefined },
  hashes: openHashes(parts.store.metrics, parts.config.workers),
  trace: (_name, work) => work(),
})
