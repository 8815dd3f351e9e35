import type { DevState } from '#src/dev/controls.ts'
import { iso } from '#src/lib/text.ts'
import { deliverWebhooks } from '#src/webhooks/delivery.ts'
import { latestDeliveries } from '#src/webhooks/store.ts'
import { markup } from './markup.ts'
import { code, type DevPage, table } from './page.ts'

export const WEBHOOKS_PAGE = '/dev/webhooks'
/** Maximum number of attempts on the page. A developer needs only the latest ones. */
const SHOWN = 100

/** Returns the page of the latest attempts of all webhooks, newest first. */
export const webhooksPage = async ({ context }: DevState): Promise<DevPage> => {
  await deliverWebhooks(context)
  const rows = await context.store.read(q => latestDeliveries(q, SHOWN))
  return {
    title: 'Webhooks',
    current: WEBHOOKS_PAGE,
    body: table(
      ['Time (UTC)', 'Webhook', 'Event', 'Outcome', 'Answer'],
      rows.map(({ delivery, name, url }) => [
        markup`<time datetime="${iso(delivery.created_at)}">${iso(delivery.created_at).slice(11, 23)}</time>`,
        markup`${name} ${code(url)}`,
        markup`${code(delivery.event_type)} <span class="muted">${delivery.event_id}</span>`,
        delivery.failure === null
          ? markup`${delivery.status ?? 0} in ${delivery.duration} ms`
          : markup`<span class="bad">${delivery.failure}</span>`,
        delivery.answer === ''
          ? markup`–`
          : markup`<details><summary>Show</summary><pre tabindex="0">${delivery.answer}</pre></details>`,
      ]),
      'No webhook was called. Add one with the admin API, or run: gatehouse webhooks listen --forward http://localhost:3000/events',
    ),
  }
}
