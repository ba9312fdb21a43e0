// Command admin asks a running bridge how it stands, lets it scan, and prints
// the last changes, through the admin API.
//
//	go run ./examples/admin -api 127.0.0.1:8081
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/rsbridge/rsbridge/httpapi"
)

func main() {
	addr := flag.String("api", "127.0.0.1:8081", "address of the admin API")
	flag.Parse()
	if err := run(context.Background(), *addr, os.Getenv("RSBRIDGE_TOKEN")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, token string) error {
	api := httpapi.NewClient(addr, token)
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	for _, set := range status.Sets {
		scan, err := api.Do(ctx, "scan", set.Name, nil, nil) // waits for a run that starts now
		if err != nil {
			return err
		}
		fmt.Printf("set %s: run %d is %s\n", set.Name, scan.ID, scan.State)
		changes, err := api.Changes(ctx, set.Name, "0")
		if err != nil {
			return err
		}
		for _, c := range changes.Changes[:min(3, len(changes.Changes))] {
			fmt.Println(c.Sequence, c.Change, c.Entity)
		}
	}
	for _, d := range status.Destinations {
		fmt.Printf("destination %s: in sync %t, %d resources\n", d.Name, d.InSync, d.Resources)
	}
	return nil
}
