import type { Family } from '#src/lib/metrics.ts'

/** Metric: attempts to send a logout, by outcome (`delivered` or `failed`). */
export const LOGOUTS: Family = {
  name: 'gatehouse_logouts_total',
  help: 'Attempts to tell applications of a logout.',
  label: 'outcome',
}

/** Metric: attempts to send an event, by outcome (`delivered` or `failed`). */
export const WEBHOOKS: Family = {
  name: 'gatehouse_webhook_deliveries_total',
  help: 'Attempts to deliver events to webhooks.',
  label: 'outcome',
}
