/** Delivers the pending messages of a database. The test kills this process during the delivery. */
import { deliverLogouts } from '#src/sessions/logout-delivery.ts'
import { startApp } from '#test/support/app.ts'
import { openBeside } from '#test/support/store.ts'
import { deliverAll } from '#test/webhooks/deliver.ts'

const [path = '', target = ''] = process.argv.slice(2)
const app = await startApp({ outbound_allow: [target] }, { store: await openBeside(path) })
await Promise.all([deliverLogouts(app.context), deliverAll(app.context)])
