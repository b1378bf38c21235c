/** Stands where the sessions will be, until they are there. */
export function SessionSkeleton() {
  return (
    <div class="session-skeleton" role="status" aria-label="Loading the sessions">
      {["a", "b", "c", "d", "e", "f", "g"].map((each) => (
        <span key={each} />
      ))}
    </div>
  );
}
