/** The shape of a conversation, until it is there. */
export function Loading() {
  return (
    <div class="loading" role="status" aria-label="Loading the conversation">
      <div class="loading-message" />
      <div class="loading-line" />
      <div class="loading-line" />
      <div class="loading-line short" />
    </div>
  );
}
