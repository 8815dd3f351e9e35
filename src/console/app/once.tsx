import { Dialog } from './dialogs.tsx'
import { Copy } from './parts.tsx'
import { words } from './words.ts'

/** Shows a value that the API returns once only. */
export const Once = (props: { title: string; text: string; value: string; onClose(): void }) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <p>{props.text}</p>
    <p class="value">
      <code>{props.value}</code>
    </p>
    <div class="dialog-actions">
      <Copy text={props.value} label={words.common.copy} />
      <button type="button" class="primary" onClick={props.onClose}>
        {words.common.close}
      </button>
    </div>
  </Dialog>
)
