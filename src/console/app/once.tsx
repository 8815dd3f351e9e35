import { Dialog } from './dialogs.tsx'
import { Copy } from './parts.tsx'
import { words } from './words.ts'

/**
 * Shows a value that the API returns only once. The main button copies the value, because closing the dialog
 * loses it.
 */
export const Once = (props: { title: string; text: string; value: string; onClose(): void }) => (
  <Dialog title={props.title} onClose={props.onClose}>
    <p>{props.text}</p>
    <p class="value">
      <code>{props.value}</code>
    </p>
    <div class="dialog-actions">
      <button type="button" onClick={props.onClose}>
        {words.common.close}
      </button>
      <Copy text={props.value} label={words.common.copy} isMain />
    </div>
  </Dialog>
)
